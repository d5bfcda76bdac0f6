"""Find out which definition of a view wrote the rows of each layer: both record it in their commits."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import functions as F

from lockstep import lake
from lockstep.definition.tables import gold_of, live_of
from lockstep.definition.version import definition_version
from lockstep.definition.view import Interval
from lockstep.reconcile.causes import Writers, last_written
from lockstep.reconcile.compare import window_of
from lockstep.reconcile.comparison import Comparison, key_json
from lockstep.reconcile.difference import Difference
from lockstep.version import code_version


def written_at(comparison: Comparison, differences: Sequence[Difference]) -> dict[str, datetime]:
    """By key, when live wrote its row (UTC).

    If live has no row of the key, it is when live last wrote into the key's window, or into the window before it.
    """
    rows = comparison.live.select(
        key_json(comparison.view).alias("key"),
        window_of(comparison.view).alias("window"),
        F.col("_updated_at").alias("at"),
    )
    keys = comparison.key_frame(d.key for d in differences)
    of_key = rows.join(F.broadcast(keys), "key", "left_semi").groupBy("key").agg(F.max("at")).collect()
    of_window = rows.groupBy("window").agg(F.max("at")).collect()
    times = {key: at.replace(tzinfo=UTC) for key, at in of_key}
    windows = sorted((start.replace(tzinfo=UTC), at.replace(tzinfo=UTC)) for start, at in of_window)
    return {d.key: times.get(d.key) or last_written(windows, d.window_start) for d in differences if windows}


def writers(comparison: Comparison, differences: Sequence[Difference], since: datetime | None) -> Writers:
    """Who wrote the rows that differ.

    Args:
        since: when the oldest of live's rows was written (UTC); None: live has no rows.
    """
    today = definition_version(comparison.view)
    live = _live_writers(comparison, today, since) if since else []
    batch_wrong = any(d.batch.unexplained for d in differences)
    return Writers(live, list(_gold_writers(comparison, today)) if batch_wrong else [])


def _live_writers(comparison: Comparison, today: str, since: datetime) -> list[tuple[datetime, bool]]:
    commits: list[tuple[datetime, bool]] = []
    for commit in lake.commits(comparison.settings, live_of(comparison.view)):
        if "definition" in commit.record:
            at = datetime.fromtimestamp(commit.timestamp / 1000, UTC)
            commits.append((at, commit.record["definition"] != today))
            if at < since:
                break
    return commits[::-1]


def _gold_writers(comparison: Comparison, today: str) -> Iterator[tuple[Interval | None, bool]]:
    for commit in lake.commits(comparison.settings, gold_of(comparison.view)):
        record = commit.record
        # A span of None is recorded by a commit that wrote no rows.
        if "ranges" not in record or record.get("span", "") is None:
            continue
        other = record["definition"] != today if "definition" in record else record["code_version"] != code_version()
        span: Any = tuple(datetime.fromisoformat(moment) for moment in record["span"]) if "span" in record else None
        yield span, other
        if span is None:
            return
