"""The stages of a replay, and what each of them has found or done. These models are the JSON in ``ops.replays``. Pure.

``planned → shadowed → compared → approved → promoted``, then perhaps ``undone``; or ``discarded`` before it is promoted. The
result of the first stage is the :class:`~lockstep.replay.plan.Plan`.
"""

from collections.abc import Mapping
from enum import StrEnum
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from lockstep.definition.view import Interval
from lockstep.ledger.ranges import Range


class Stage(StrEnum):
    """How far a replay has come."""

    PLANNED = "planned"
    SHADOWED = "shadowed"
    COMPARED = "compared"
    APPROVED = "approved"
    PROMOTED = "promoted"
    UNDONE = "undone"
    DISCARDED = "discarded"


class Model(BaseModel):
    """A value that does not change."""

    model_config = ConfigDict(frozen=True)


class StageResult(Model):
    """What a stage has found or done."""

    stage: ClassVar[Stage]


class Decision(StageResult):
    """A stage on which a person decides, who need not be the one who opened the replay."""

    by: str


class ShadowedBronze(Model):
    """The ranges of which bronze has lost rows; the shadow has these rows, read from Kafka."""

    ranges: tuple[Range, ...]


class ShadowedSilver(Model):
    """A shadow of silver.

    Args:
        counts: the rows of the ranges by outcome.
        delta: by how much these counts differ from those of silver now.
    """

    ranges: tuple[Range, ...]
    counts: Mapping[str, int]
    delta: Mapping[str, int]


class ShadowedView(Model):
    """A shadow of gold.

    Args:
        span: the rows of the view that it replaces; None where no row of it changes.
        version: the version of gold that it is compared with.
        ranges: the position of gold that it was computed at.
    """

    span: Interval | None
    version: int
    ranges: tuple[Range, ...]


class Shadowed(StageResult):
    """The shadows: bronze and silver by stream, gold by view; and the code that computed them.

    Args:
        seconds: how long that took.
    """

    stage: ClassVar[Stage] = Stage.SHADOWED

    bronze: Mapping[str, ShadowedBronze]
    silver: Mapping[str, ShadowedSilver]
    gold: Mapping[str, ShadowedView]
    code_version: str
    seconds: float


class KeyCounts(Model):
    """How many keys of a table are the same, differ, or are on one side only."""

    equal: int = 0
    changed: int = 0
    added: int = 0
    removed: int = 0


class TableDiff(Model):
    """What a promotion would change in a table, in windows.

    Args:
        keys: the same in keys.
        samples: some of the windows that differ, for people.
    """

    windows: int = 0
    equal: int = 0
    changed: int = 0
    added: int = 0
    removed: int = 0
    keys: KeyCounts = KeyCounts()
    samples: tuple[str, ...] = ()


class Compared(StageResult):
    """The diff by table.

    Args:
        windows, changed: how many windows the views have in the interval, and how many of them would change.
        checks: by table, the expectations of its suite that the shadow does not meet; tables that meet all are left out.
    """

    stage: ClassVar[Stage] = Stage.COMPARED

    tables: Mapping[str, TableDiff]
    windows: int
    changed: int
    checks: Mapping[str, tuple[str, ...]]


class Approved(Decision):
    """Who approved the diff; "rule" where the rule of the request did."""

    stage: ClassVar[Stage] = Stage.APPROVED


class Promoted(StageResult):
    """By table, the version of the commit that replaced its rows."""

    stage: ClassVar[Stage] = Stage.PROMOTED

    versions: Mapping[str, int]


class Undone(Decision):
    """By table, the version of the commit that put the rows back.

    Args:
        kept: by view, how many windows or keys stay as they are, because they have changed since the promotion.
    """

    stage: ClassVar[Stage] = Stage.UNDONE

    versions: Mapping[str, int]
    kept: Mapping[str, int]


class Discarded(Decision):
    """Why the replay was given up."""

    stage: ClassVar[Stage] = Stage.DISCARDED

    reason: str
