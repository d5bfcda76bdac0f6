"""What a run has written to a table, as its log has it: version, rows, offsets, and the versions that it was computed from."""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.errors import LockstepError
from lockstep.ledger.ranges import Range, decode
from lockstep.lineage.tables import TOPIC

if TYPE_CHECKING:
    from lockstep.lake import Commit
    from lockstep.settings import Settings

Recent = Callable[["Commit"], bool]
log = logging.getLogger(__name__)
# Airflow and the Spark server may run on machines whose clocks differ by this.
_CLOCK_SKEW = timedelta(minutes=5)


@dataclass(frozen=True)
class Written:
    """What was written to a table.

    Args:
        version: of the newest commit.
        ranges: the offsets that were taken; empty ones are left out.
        interval: the event time (ISO, UTC) that was replaced.
        counts: the writer's own sums, such as silver's.
        sources: by table, the version that it was computed from.
    """

    table: str
    version: int
    rows: int
    ranges: tuple[Range, ...] = ()
    interval: tuple[str, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, int] = field(default_factory=dict)

    def as_extra(self) -> dict[str, Any]:
        """The fields that say something, as JSON: offsets are ``{topic: {partition: [start, end]}}``, without the end."""
        fields = {
            "offsets": offsets(self.ranges),
            "interval": [*self.interval],
            "counts": dict(self.counts),
            "sources": dict(self.sources),
        }
        return {"version": self.version, "rows": self.rows, **{name: value for name, value in fields.items() if value}}


def offsets(ranges: Iterable[Range]) -> dict[str, dict[str, list[int]]]:
    """The ranges as JSON, by topic and partition."""
    found: dict[str, dict[str, list[int]]] = {}
    for r in ranges:
        found.setdefault(r.topic, {})[str(r.partition)] = [r.start, r.end]
    return found


def since(started: datetime) -> Recent:
    """Whether a commit may be of a run that started at an instant."""
    oldest = (started - _CLOCK_SKEW).timestamp() * 1000
    return lambda commit: commit.timestamp >= oldest


def after(version: int | None) -> Recent:
    """Whether a commit came after a version of its table; None: after there was none."""
    return lambda commit: version is None or commit.version > version


def written(settings: "Settings", table: str, run_id: str, recent: Recent) -> Written | None:
    """What a run has written to a table, in whichever of its attempts; None: nothing, its log cannot be read, or it is a topic.

    Args:
        recent: which commits may be the run's. The first that may not ends the search, from the newest on.
    """
    if table.startswith(TOPIC):
        # A table's log names the run that wrote it. A topic's does not.
        return None
    try:
        commits = takewhile(recent, lake.commits(settings, table))
        return _sum([commit for commit in commits if commit.record.get("run_id") == run_id])
    except (LockstepError, OSError) as error:
        # The rows are written, and `lockstep ledger verify` names what is broken: the step does not fail for it.
        log.warning("What was written to %s is not known: %s", table, error)
        return None


def _sum(newest_first: "list[Commit]") -> Written | None:
    if not newest_first:
        return None
    newest, first = newest_first[0], newest_first[-1]
    record = newest.record
    starts = {(r.topic, r.partition): r.start for r in decode(first.record.get("ranges", ()))}
    ends = decode(record.get("ranges", ()))
    ranges = (Range(r.topic, r.topic_id, r.partition, starts.get((r.topic, r.partition), r.start), r.end) for r in ends)
    return Written(
        table=newest.table,
        version=newest.version,
        rows=sum(commit.record.get("rows", commit.rows) for commit in newest_first),
        ranges=tuple(r for r in ranges if r.size),
        interval=tuple(record.get("interval") or record.get("span") or ()),
        counts=record.get("counts", {}),
        sources={table: version for table, version in record.get("sources", {}).items() if version is not None},
    )
