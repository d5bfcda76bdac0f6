"""One life of a view in the live layer, and the job that runs it.

A checkpoint belongs to a :class:`Job`, a query that runs one view or several. Each generation has its own transaction ids
(``live:<table>:<generation>``). With the old ids, Delta would skip the writes of a view that was reset, because it has seen those
batch numbers.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.definition.tables import live_of
from lockstep.live.seeds import Seed

if TYPE_CHECKING:
    from lockstep.definition import View
    from lockstep.settings import Settings


@dataclass(frozen=True, order=True)
class Job:
    """What has a checkpoint: a live query, which runs one view or several.

    Args:
        name: the view's name if it has one view of its own.
        streams: the streams that it reads, in the order of its sources. They are fixed with the checkpoint; empty: the view's.
    """

    name: str
    number: int
    streams: tuple[str, ...] = field(default=(), compare=False)

    @property
    def is_shared(self) -> bool:
        """Whether it was made for several views. No view has its name, because a view's name begins with a letter."""
        return self.name.startswith("_")

    def location(self, settings: "Settings") -> str:
        """The location of its checkpoint."""
        return lake.checkpoint(settings, self.name, self.number)

    def __str__(self) -> str:
        return f"{self.name}/{self.number}"


@dataclass(frozen=True)
class Generation:
    """One life of a view in the live layer, from its first batch until the next generation replaces it.

    Args:
        reason: why it was created, in a person's words.
        by: who created it.
        starts: per topic and partition, the offset at which it starts. A topic that is not named starts at its first offset.
        since: it writes only rows from this instant (UTC) on; earlier rows were written by earlier generations. None: all rows.
        savepoint: ``<query>/<name>`` of the savepoint that it continues; None: it starts without state.
        shared: the job that it shares with other views; None: it has one of its own.
        streams: what its own job reads, where that is not what the view reads; see :class:`Job`.
        label: the name under which the state has the view's keys; empty: the view's own. A fork keeps the original's.
        seed: the point of the batch layer that it continues; None: another one.
    """

    query: str
    number: int = 1
    reason: str = "first"
    by: str = ""
    starts: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    since: datetime | None = None
    savepoint: str | None = None
    shared: Job | None = None
    streams: tuple[str, ...] = ()
    label: str = ""
    seed: Seed | None = None

    @property
    def job(self) -> Job:
        """The job that runs it."""
        return self.shared or Job(self.query, self.number, self.streams)

    @property
    def key_label(self) -> str:
        """The name under which the job's state has the view's keys."""
        return self.label or self.query

    @property
    def table(self) -> str:
        """The query's table in the live layer."""
        return live_of(self.query)

    @property
    def txn_app(self) -> str:
        """The name under which Delta remembers the numbers of its batches."""
        return f"live:{self.table}:{self.number}"

    def location(self, settings: "Settings") -> str:
        """The location of its checkpoint."""
        return self.job.location(settings)

    def rows_written(self, view: "View") -> str:
        """The predicate (SQL) for the view's rows that this generation writes. Earlier generations wrote the others."""
        if self.since is None:
            return "true"
        return f"{view.time_column} >= TIMESTAMP '{self.since:%F %T.%f}'"


@dataclass(frozen=True)
class Beginning:
    """Where the next generation of a view begins: see :class:`Generation`."""

    view: "View"
    starts: Mapping[str, Mapping[int, int]]
    since: datetime | None
    seed: Seed | None
