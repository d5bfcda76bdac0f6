"""The status of the platform: streams, views, services, DAG runs and gates, and the problems of each."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, cast

from pydantic_core import to_jsonable_python

from lockstep.airflow_api import Dag, Run
from lockstep.live.progress import Progress
from lockstep.quality.outcomes import GateVerdict
from lockstep.status.lag import PartitionLag

# The state of a service that answers as it should; the stack has others, such as ``starting``.
HEALTHY = "healthy"


@dataclass(frozen=True)
class Stream:
    """The rows of one stream in each layer, and the lag of each layer.

    Args:
        unknown: by field that the contract does not name: how many rows of silver have it.
        lag: by layer, how many offsets it is behind the topic: ``bronze``, ``silver``, ``gold.<view>``, ``live.<view>``.
        partitions: the same per partition.
        overdue: by layer that lags further than it may: how many offsets are too old to be unread.
        fresh_at: the time of the newest bronze commit in milliseconds (UTC); None before the first.
        newest: of a stream of events, by partition, the newest Kafka timestamp in silver (UTC); None: it has had no record.
    """

    name: str
    topic: str
    log_end: int
    bronze: int = 0
    silver: int = 0
    duplicates: int = 0
    quarantined: int = 0
    markers: int = 0
    erased: int = 0
    unknown: Mapping[str, int] = field(default_factory=dict)
    lag: Mapping[str, int] = field(default_factory=dict)
    partitions: Sequence[PartitionLag] = ()
    overdue: Mapping[str, int] = field(default_factory=dict)
    fresh_at: int | None = None
    newest: Mapping[int, datetime | None] = field(default_factory=dict)

    @property
    def waiting(self) -> int:
        """How many offsets nobody can read before a transaction has ended."""
        return sum(p.waiting for p in self.partitions)

    @property
    def adds_up(self) -> bool:
        """Whether silver accounts for every row of bronze. Not known, so true, while silver is behind bronze."""
        accounted = self.silver + self.duplicates + self.quarantined + self.markers + self.erased
        return accounted == self.bronze or self.lag.get("silver", 0) > self.lag.get("bronze", 0)


@dataclass(frozen=True)
class Disk:
    """A disk, in bytes."""

    size: int
    free: int


class Verdict(StrEnum):
    """Whether live and batch agree on a view."""

    NOT_COMPARED = "nothing compared yet"
    EQUAL = "equal"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class ViewStatus:
    """The row counts of one view, and how live and batch compare.

    Args:
        counted, ignored, side_output: rows of silver that gold counted, ignored as late, or wrote to the side output.
        until: live and batch are compared up to this time (ISO 8601); None before the first comparison.
        windows: how many windows the newest comparison compared.
        unexplained: how many of them differ for no known reason.
        sample: one of these.
        recent: the counts of gold's newest commit: ``counted``, ``ignored`` and ``side_output``.
        live: the newest progress of its live query; None: the live service has not published any.
        made_from: the views whose results it reads.
    """

    name: str
    counted: int
    ignored: int
    side_output: int
    until: str | None
    windows: int
    unexplained: int
    sample: str | None
    recent: Mapping[str, int] = field(default_factory=dict)
    live: Progress | None = None
    made_from: Sequence[str] = ()

    @property
    def verdict(self) -> Verdict:
        """The result of the newest comparison."""
        if self.until is None:
            return Verdict.NOT_COMPARED
        return Verdict.UNEXPLAINED if self.unexplained else Verdict.EQUAL


@dataclass(frozen=True)
class Unpublished:
    """The results of a view that its stream does not have yet, longer than it may take.

    Args:
        stream: that has its results.
        readers: the views that read this stream.
        since: since when they are final (UTC).
    """

    view: str
    stream: str
    readers: Sequence[str]
    since: datetime


@dataclass(frozen=True)
class ClockAhead:
    """How far the timestamps of records may be ahead of the broker's clock, in milliseconds.

    Args:
        taken: by the topic.
        allowed: by the contract, which is less.
    """

    topic: str
    taken: int
    allowed: int


@dataclass(frozen=True)
class Problem:
    """One thing that is not all right.

    Args:
        key: identifies it for as long as it lasts, such as ``service:kafka``.
        what: what is wrong, and where.
        fix: what to do; a command where one helps.
        since: since when (UTC); None: not known.
    """

    key: str
    what: str
    fix: str
    since: datetime | None = None

    def __str__(self) -> str:
        """One line for people."""
        since = f" (since {self.since:%F %T} UTC)" if self.since else ""
        return f"{self.what}{since}: {self.fix}"


@dataclass(frozen=True)
class AirflowStatus:
    """What Airflow says of its DAGs.

    Args:
        dags: by name, the DAGs that it has parsed.
        runs: by DAG, its newest run that has ended.
        import_errors: by file that it could not import, the last line of the traceback.
    """

    dags: Mapping[str, Dag] = field(default_factory=dict)
    runs: Mapping[str, Run] = field(default_factory=dict)
    import_errors: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Status:
    """Everything on the screen.

    Args:
        broken: the contracts and views of the project that cannot run, and why.
        without_topic: the streams whose topic does not exist.
        forbidden: the streams whose topic the account may not see.
        clocks_ahead: the topics that take records of clocks which are too far ahead.
        captured: by captured table, what its source does not have of its contract.
        unpublished: the results of views that other views wait for.
        registry: why the schema registry cannot be asked; empty: it can, or no stream needs it.
        health: by service, its state, such as ``healthy``.
        quality: by table, the newest verdict of its gate.
        marts: by days whose marts could not be built, which models and tests failed, and why.
        disks: by folder, how full its disk is.
        torn: by table, the newest versions of its log that are cut short, as after a power cut.
        certificates: by file, when the certificate in it that ends first is not valid any more (UTC).
        problems: what is not all right, each thing once.
    """

    streams: list[Stream]
    views: list[ViewStatus]
    broken: Mapping[str, str] = field(default_factory=dict)
    without_topic: list[str] = field(default_factory=list)
    forbidden: list[str] = field(default_factory=list)
    clocks_ahead: Sequence[ClockAhead] = ()
    captured: Mapping[str, str] = field(default_factory=dict)
    unpublished: Sequence[Unpublished] = ()
    registry: str = ""
    health: Mapping[str, str] = field(default_factory=dict)
    airflow: AirflowStatus = field(default_factory=AirflowStatus)
    quality: Mapping[str, GateVerdict] = field(default_factory=dict)
    marts: Mapping[str, str] = field(default_factory=dict)
    disks: Mapping[str, Disk] = field(default_factory=dict)
    torn: Mapping[str, list[int]] = field(default_factory=dict)
    certificates: Mapping[str, datetime] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether there is no problem."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """The status as ``--json`` prints it; times are ISO (UTC)."""
        streams = [
            asdict(s) | {"waiting": s.waiting, "adds_up": s.adds_up, "partitions": [p.as_dict() for p in s.partitions]}
            for s in self.streams
        ]
        views = [asdict(v) | {"verdict": v.verdict} for v in self.views]
        problems = [asdict(p) | {"line": str(p)} for p in self.problems]
        facts = asdict(self) | {"streams": streams, "views": views, "problems": problems}
        return cast("dict[str, Any]", to_jsonable_python({"ok": self.ok} | facts))


def age(milliseconds: int | None) -> str:
    """How long ago a time in milliseconds was, such as ``3 m ago``."""
    if milliseconds is None:
        return "never"
    seconds = int(datetime.now(UTC).timestamp() - milliseconds / 1000)
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= length:
            return f"{seconds // length} {unit} ago"
    return f"{max(seconds, 0)} s ago"
