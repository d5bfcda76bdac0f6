"""The record of every replay: one row a stage in ``ops.replays``. The state of a replay is read back without Spark."""

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep.control.records import Record
from lockstep.ledger.ops_table import OpsTable
from lockstep.replay.plan import Plan
from lockstep.replay.request import ReplayRefused, Request
from lockstep.replay.stages import (
    Approved,
    Compared,
    Decision,
    Discarded,
    Promoted,
    Shadowed,
    Stage,
    StageResult,
    Undone,
)
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

COLUMNS = {
    "replay": "STRING",
    "stage": "STRING",
    "by": "STRING",
    "reason": "STRING",
    "request": "STRING",
    "detail": "STRING",
    "run_id": "STRING",
    "code_version": "STRING",
    "at": "TIMESTAMP",
}
TABLE = OpsTable("ops.replays", COLUMNS, "replay")
RESULTS: tuple[type[StageResult], ...] = (Plan, Shadowed, Compared, Approved, Promoted, Undone, Discarded)
_MODEL = {model.stage: model for model in RESULTS}
# The field of a replay that has the stage's result.
_FIELD = {stage: "plan" if stage is Stage.PLANNED else stage.value for stage in Stage}
_ENDS = {Stage.PROMOTED, Stage.UNDONE, Stage.DISCARDED}


@dataclass(frozen=True)
class Replay:
    """A replay as its record says.

    Args:
        opened_at: when it was planned (milliseconds, UTC).
        order: the stages in the order in which they were last done.
    """

    id: str
    by: str
    request: Request
    opened_at: int
    plan: Plan
    shadowed: Shadowed | None = None
    compared: Compared | None = None
    approved: Approved | None = None
    promoted: Promoted | None = None
    undone: Undone | None = None
    discarded: Discarded | None = None
    order: tuple[Stage, ...] = (Stage.PLANNED,)

    @property
    def state(self) -> Stage:
        """The newest stage."""
        return self.order[-1]

    def has(self, stage: Stage, after: Stage) -> bool:
        """Whether the stage was done, and the earlier one was not done again since."""
        return stage in self.order and after in self.order and self.order.index(stage) > self.order.index(after)

    @property
    def is_open(self) -> bool:
        """Whether it still holds its intervals, and may go on."""
        return not _ENDS & set(self.order)

    @property
    def results(self) -> dict[Stage, StageResult]:
        """What is known of each stage, in the order in which they were last done."""
        return {stage: getattr(self, _FIELD[stage]) for stage in self.order}


def write(spark: "SparkSession", settings: "Settings", replay: Replay, result: StageResult, run_id: str) -> None:
    """Add what a stage of the replay has found or done to the record. The first plan stays."""
    by = result.by if isinstance(result, Decision) else replay.by
    row = {
        "replay": replay.id,
        "stage": result.stage.value,
        "by": by,
        "reason": replay.request.reason,
        "request": replay.request.model_dump_json(by_alias=True, exclude_defaults=True),
        "detail": result.model_dump_json(),
        "run_id": run_id,
        "code_version": code_version(),
        "at": datetime.now(UTC),
    }
    record = {
        "replay": replay.id,
        "stage": result.stage.value,
        "by": by,
        "request": replay.request.as_dict(),
        "detail": result.model_dump(mode="json"),
        "run_id": run_id,
    }
    key = f"{replay.id}/{result.stage.value}"
    with TABLE.writing(spark, settings, run_id) as commit:
        if result.stage is Stage.PLANNED and commit.newest(key):
            # Of a run that died after its commit. A second plan could take the place of the one that the shadow is computed by.
            return
        commit.append([tuple(row.values())], record, key)


def read(settings: "Settings", replay: str) -> Replay | None:
    """The replay with this id, or None."""
    return next((known for known in replays(settings) if known.id == replay), None)


def find(settings: "Settings", replay: str) -> Replay:
    """The replay with this id, which must exist.

    Raises:
        ReplayRefused: there is none.
    """
    known = read(settings, replay)
    if known is None:
        raise ReplayRefused(f"There is no replay {replay}: `lockstep replay show` lists them.")
    return known


def replays(settings: "Settings") -> list[Replay]:
    """All replays, the one that was opened last first."""
    stages: dict[str, list[Record]] = defaultdict(list)
    for record in TABLE.newest_of_each_key(settings):
        stages[record.fields["replay"]].append(record)
    return sorted(map(_replay, stages.values()), key=lambda replay: replay.opened_at, reverse=True)


def _replay(records: list[Record]) -> Replay:
    """The replay whose stages these are, in the order in which they were last done."""
    results = {Stage(r.fields["stage"]): r for r in records}
    models: dict[str, Any] = {_FIELD[s]: _MODEL[s].model_validate(r.fields["detail"]) for s, r in results.items()}
    planned = results[Stage.PLANNED]
    return Replay(
        id=planned.fields["replay"],
        by=planned.fields["by"],
        request=Request.model_validate(planned.fields["request"]),
        opened_at=round(planned.written_at.timestamp() * 1000),
        order=tuple(results),
        **models,
    )
