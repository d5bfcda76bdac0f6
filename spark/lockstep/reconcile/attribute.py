"""Find out why windows differ: compute the correct rows, and the rows that each cause would produce.

This computes the view again for the windows that differ. It runs only if there are any.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, cast

from pyspark.sql import functions as F

from lockstep.contracts import CONTRACTS
from lockstep.control.intervals import holders
from lockstep.definition import Keyed, View
from lockstep.definition.events import EXACT_JSON
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.view import BEGINNING, Interval
from lockstep.reconcile import causes
from lockstep.reconcile.compare import by_key
from lockstep.reconcile.comparison import Comparison, Silver, key_json
from lockstep.reconcile.difference import Cause, Difference, Kind, Side
from lockstep.reconcile.positions import attribute_to_position
from lockstep.reconcile.writers import writers, written_at
from lockstep.refine.parse import GOOD

if TYPE_CHECKING:
    from pyspark.sql import Column

# As many keys that differ are collected into this process, and judged, at a time.
PAGE_KEYS = 50_000
# Longer than any row can be late: a hundred years.
NO_LIMIT = timedelta(days=36_500)
# The causes that are proved by computing the view, in this order, until every live row is explained: the likeliest first.
PROVABLE = (Cause.NOT_YET_SEEN, Cause.LATE, Cause.DUPLICATE, Cause.QUARANTINED)
_QUARANTINED = "NOT _marker AND _reason IS NOT NULL"


def attribute(comparison: Comparison) -> Iterator[list[Difference]]:
    """Every key that differs, by window, with the causes that could be proved; at most :data:`PAGE_KEYS` keys at a time."""
    return (_attributed(comparison, page) for page in _pages(comparison))


def _attributed(comparison: Comparison, differences: list[Difference]) -> list[Difference]:
    if approximate := comparison.view.approximate:
        differences = [causes.mark_within_error(d, approximate) for d in differences]
    if comparison.view.upserts:
        # Only keyed views upsert.
        differences = attribute_to_position(comparison, cast("Keyed", comparison.view), differences)
    explained = [d for d in differences if d.explained]
    rest = [d for d in differences if not d.explained]
    return explained + _with_causes(comparison, rest) if rest else differences


def _with_causes(comparison: Comparison, differences: list[Difference]) -> list[Difference]:
    """Mark the wrong sides, and attribute them to causes. Those that need no computation of the view come first."""
    expected = _rows(comparison, differences, comparison.view, comparison.silver())
    approximate = comparison.view.approximate
    differences = [causes.mark_wrong_sides(d, expected.get(d.key), approximate) for d in differences]
    claimed = _claimed(comparison)
    differences = [causes.attribute_to_replay(d, claimed) for d in differences]
    times = written_at(comparison, differences)
    history = writers(comparison, differences, min(times.values(), default=None))
    differences = [causes.attribute_to_definition(d, history, times.get(d.key)) for d in differences]
    for cause in PROVABLE:
        if not any(d.live.attributable for d in differences):
            break
        rows = _rows_under(cause, comparison, differences)
        differences = [causes.attribute_to(cause, d, rows, approximate) for d in differences]
    return differences


def _rows_under(cause: Cause, comparison: Comparison, differences: Sequence[Difference]) -> dict[str, str]:
    """The rows that live would have if the cause was at work, for the keys that differ."""
    view = comparison.view
    match cause:
        case Cause.LATE:
            no_limit = replace(view, allowed_lateness=NO_LIMIT, correct_within=None)
            return _rows(comparison, differences, no_limit, comparison.silver())
        case Cause.DUPLICATE:
            good = {s: comparison.parsed(s, GOOD) for s in view.streams}
            return _rows(comparison, differences, view, good)
        case Cause.QUARANTINED:
            silver = comparison.silver()
            both = {s: silver[s].unionByName(comparison.parsed(s, _QUARANTINED)) for s in silver}
            return _rows(comparison, differences, view, both)
        case Cause.NOT_YET_SEEN:
            return _rows(comparison, differences, view, comparison.silver_of_live(), comparison.snapshot.until)
        case _:
            raise ValueError(f"{cause.value!r} cannot be proved by computing the view: see PROVABLE.")


def _pages(comparison: Comparison) -> Iterator[list[Difference]]:
    """The keys that differ, in the order of their windows. Both sides count as correct until they are checked."""
    differing = by_key(comparison.live, comparison.batch, comparison.view).where(F.col("kind") != Kind.EQUAL.value)
    key_column = key_json(comparison.view).alias("key")
    rows = differing.select("_window", key_column, "kind", _json("live"), _json("batch")).orderBy("_window", "key")
    page = rows.limit(PAGE_KEYS).collect()
    while page:
        found = [
            Difference(start.replace(tzinfo=UTC), key, Kind(kind), Side(live), Side(batch))
            for start, key, kind, live, batch in page
        ]
        yield _with_doubled_sides(comparison, found)
        if len(page) < PAGE_KEYS:
            return
        window, key = F.lit(found[-1].window_start), F.lit(found[-1].key)
        later = (F.col("_window") > window) | ((F.col("_window") == window) & (F.col("key") > key))
        page = rows.where(later).limit(PAGE_KEYS).collect()


def _with_doubled_sides(comparison: Comparison, differences: list[Difference]) -> list[Difference]:
    if not any(d.kind is Kind.DOUBLED for d in differences):
        return differences
    doubled = comparison.live.groupBy(key_json(comparison.view).alias("key")).count().where("count > 1")
    doubled_live = {row["key"] for row in doubled.collect()}
    return [_with_doubled_side(d, d.key in doubled_live) if d.kind is Kind.DOUBLED else d for d in differences]


def _with_doubled_side(difference: Difference, is_live: bool) -> Difference:
    if is_live:
        return replace(difference, live=replace(difference.live, doubled=True))
    return replace(difference, batch=replace(difference.batch, doubled=True))


def _rows(
    comparison: Comparison,
    differences: Sequence[Difference],
    view: View,
    silver: Silver,
    until: datetime | None = None,
) -> dict[str, str]:
    """The rows that a view gives over some silver rows, for the keys that differ: JSON, by key."""
    interval = BEGINNING, until or comparison.until
    if not view.upserts:
        windows = [d.window_start for d in differences]
        interval = min(windows), max(windows) + timedelta(minutes=1)
    return comparison.computed([d.key for d in differences], view, silver, interval)


def _claimed(comparison: Comparison) -> list[Interval]:
    """The intervals (UTC) of the view's tables that replays and backfills rewrite now."""
    view = comparison.view
    tables = {gold_of(view), *(Tables.of(CONTRACTS[s]).log for s in view.streams)}
    return [
        (row["low"].astimezone(UTC), row["high"].astimezone(UTC))
        for row in holders(comparison.settings)
        if row["table_name"] in tables
    ]


def _json(layer: str) -> "Column":
    return F.to_json(layer, EXACT_JSON).alias(layer)
