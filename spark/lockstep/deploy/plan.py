"""What differs between the project's files and what runs. Pure: :mod:`.observe` looks."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from lockstep.deploy.sizes import readable

if TYPE_CHECKING:
    from lockstep.definition.column_changes import ColumnChanges
    from lockstep.deploy.changed_settings import ChangedSetting
    from lockstep.deploy.remains import Remains

# What it costs that a service is started again.
COSTS = {
    "postgres": "; tasks that run fail, and are tried again",
    "kafka": "; producers wait",
    "connect": "; changes wait in PostgreSQL",
    "spark": "; tasks that run fail, and are tried again",
    "airflow-scheduler": "; tasks that run end, and are tried again",
    "live": "; its queries go on from their checkpoints",
}


class Action(StrEnum):
    """What a change does, as Terraform's plan marks it."""

    CREATE = "+"
    CHANGE = "~"
    REMOVE = "-"
    NAME = "!"  # only named: somebody must decide
    FOLLOW = "="  # happens by itself


@dataclass(frozen=True)
class Change:
    """One line of the plan.

    Args:
        what: such as ``topic returns``.
        detail: what happens, and what it costs.
    """

    action: Action
    what: str
    detail: str

    @property
    def is_made(self) -> bool:
        """Whether ``apply`` makes it."""
        return self.action not in (Action.NAME, Action.FOLLOW)

    def __str__(self) -> str:
        return f"{self.action} {self.what}: {self.detail}"


@dataclass(frozen=True)
class ViewState:
    """One view of the project, and its live query.

    Args:
        started: the fingerprint of the definition with which its query last started; None: it never has.
        current: that of its definition now; None where a topic is missing.
        gold: the version of the definition that wrote gold's newest rows; None: there are none.
        version: that of its definition now.
    """

    started: str | None
    current: str | None
    gold: str | None
    version: str

    @property
    def is_new(self) -> bool:
        """Whether nothing of it has run."""
        return self.started is None

    @property
    def has_old_rows(self) -> bool:
        """Whether gold has rows that another version of the definition wrote last."""
        return self.gold is not None and self.gold != self.version

    @property
    def live_differs(self) -> bool:
        """Whether its live query does not run this definition."""
        return self.current is None or self.started != self.current


@dataclass(frozen=True)
class TableChange:
    """How a table follows the columns that are declared now.

    Args:
        size: the bytes of its files, if it is rewritten.
    """

    columns: "ColumnChanges"
    size: int = 0

    def __str__(self) -> str:
        new = [
            f"gets the column {name} {kind}, null in the rows that are there" for name, kind in self.columns.new.items()
        ]
        wider = [f"{name} becomes {kind}" for name, kind in self.columns.wider.items()]
        rewritten = [f"its files ({readable(self.size)}) are written anew"] if wider else []
        return "; ".join([*new, *wider, *rewritten])


@dataclass(frozen=True)
class Capture:
    """How the captured tables (``schema.name``) differ from those of Debezium's connector.

    Args:
        new: those that it does not read yet.
        gone: those that no contract names any more.
        lacking: by new table, what it lacks.
    """

    new: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    lacking: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class Observed:
    """The project's files, and what runs.

    Args:
        broken: the contracts and views that cannot run, and why.
        missing_topics: by stream, its topic that does not exist, with its number of partitions.
        topic_differences: by topic, how it differs from its contract.
        tables: the tables of silver and gold that must follow their columns, by name.
        capture: the tables of the source database that are captured from now on, or not any more.
        views: the views of the project that run, by name.
        running: the views that the live service runs.
        without_contract: the streams whose tables are in the lake, and whose contract is gone.
        new_services: the services that the supervisor does not know yet.
        settings: those with other values than the services were started with.
        restarted: the services that are started again for them, in the order of their start.
        followed: the files that are read by themselves, and what happens with them.
    """

    broken: Mapping[str, str] = field(default_factory=dict)
    missing_topics: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    topic_differences: Mapping[str, list[str]] = field(default_factory=dict)
    tables: Mapping[str, TableChange] = field(default_factory=dict)
    capture: Capture = field(default_factory=Capture)
    views: Mapping[str, ViewState] = field(default_factory=dict)
    running: frozenset[str] = frozenset()
    without_contract: tuple[str, ...] = ()
    new_services: tuple[str, ...] = ()
    settings: "tuple[ChangedSetting, ...]" = ()
    restarted: tuple[str, ...] = ()
    followed: Mapping[str, str] = field(default_factory=dict)

    @property
    def not_live(self) -> list[str]:
        """The views that the live service does not run as they are, and those that it runs although they are gone."""
        differing = [name for name, view in self.views.items() if view.live_differs or name not in self.running]
        return [*differing, *sorted(self.running - self.views.keys())]


def plan(observed: Observed) -> list[Change]:
    """The changes, in the order in which they are made. None: everything runs as the files say."""
    return [
        *(Change(Action.NAME, place, f"refused: {reason}") for place, reason in observed.broken.items()),
        *_topics(observed),
        *_settings(observed),
        *(Change(Action.CREATE, f"service {name}", "is started") for name in observed.new_services),
        *(Change(Action.CHANGE, f"table {name}", str(change)) for name, change in observed.tables.items()),
        *_captured(observed.capture),
        *_views(observed),
        *_removed(observed),
        *(Change(Action.FOLLOW, what, detail) for what, detail in observed.followed.items()),
    ]


def purged(remains: "Iterable[Remains]") -> list[Change]:
    """What ``apply --purge`` removes for ever, and the topics that stay."""
    remains = [*remains]
    return [
        *(Change(Action.REMOVE, str(left), f"removed for ever: {left.describe()}") for left in remains),
        *(
            Change(
                Action.NAME,
                f"topic {left.topic}",
                "stays with its records, because it is yours; "
                f"`lockstep kafka topics --delete --topic {left.topic}` deletes it",
            )
            for left in remains
            if left.topic
        ),
    ]


def _topics(observed: Observed) -> Iterator[Change]:
    for stream, (topic, partitions) in observed.missing_topics.items():
        yield Change(Action.CREATE, f"topic {topic}", f"of {stream}, with {partitions} partitions, kept without end")
    for topic, reasons in observed.topic_differences.items():
        for reason in reasons:
            yield Change(Action.NAME, f"topic {topic}", reason)


def _captured(capture: Capture) -> Iterator[Change]:
    for name in capture.new:
        yield from (Change(Action.NAME, f"source table {name}", reason) for reason in capture.lacking.get(name, ()))
        detail = "is captured; Debezium reads its rows first, and the other tables wait meanwhile"
        yield Change(Action.CREATE, f"source table {name}", detail)
    for name in capture.gone:
        yield Change(Action.REMOVE, f"source table {name}", "its changes are not read any more")


def _settings(observed: Observed) -> Iterator[Change]:
    for setting in observed.settings:
        if setting.way:
            yield Change(Action.NAME, f"setting {setting.name}", f"{setting.values}: {setting.way}")
        else:
            detail = f"{setting.values}, for {', '.join(setting.services)}"
            yield Change(Action.CHANGE, f"setting {setting.name}", detail)
    for name in observed.restarted:
        yield Change(Action.CHANGE, f"service {name}", f"is started again{COSTS.get(name, '')}")


def _views(observed: Observed) -> Iterator[Change]:
    views, running = observed.views, observed.running
    changed = [name for name, view in views.items() if not view.is_new and view.live_differs]
    replayed = [name for name in changed if views[name].has_old_rows]
    stopped = [name for name, view in views.items() if not view.live_differs and running and name not in running]
    removed = sorted(running - views.keys())
    of_views = [
        (
            Action.CREATE,
            [name for name, view in views.items() if view.is_new],
            "live and in batch, from the first records of the topics",
        ),
        (Action.CREATE, stopped, "live from the checkpoint"),
        (Action.CHANGE, changed, "the live query starts again from its checkpoint, if it can"),
        (Action.NAME, replayed, "the rows of before keep their results until a replay: see `lockstep replay plan`"),
        (Action.REMOVE, removed, "the live query stops; tables and checkpoint stay until `lockstep apply --purge`"),
    ]
    for action, names, detail in of_views:
        if names:
            yield Change(action, f"view{'s' if len(names) > 1 else ''} {', '.join(names)}", detail)


def _removed(observed: Observed) -> Iterator[Change]:
    for name in observed.without_contract:
        yield Change(
            Action.NAME,
            f"stream {name}",
            "has no contract any more, so nobody ingests it; its tables stay until `lockstep apply --purge`",
        )
