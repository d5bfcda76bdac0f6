"""The record of every replay: one row a stage in ``ops.replays``, and the state of a replay, read back without Spark."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from lockstep import lake, ledger
from lockstep.control.leases import lease
from lockstep.definition.columns import ddl
from lockstep.replay.plan import Plan
from lockstep.replay.request import Refused, Request
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

TABLE = "ops.replays"
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
ENDS = ("promoted", "undone", "discarded")


@dataclass(frozen=True)
class Replay:
    """A replay as its record says.

    Args:
        stages: what is known of each stage that is done, in the order in which they were done last: planned, shadowed,
            compared, approved, promoted, undone, discarded.
        opened_at: when it was planned (milliseconds, UTC).
    """

    id: str
    by: str
    request: Request
    opened_at: int
    stages: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def plan(self) -> Plan:
        return Plan.model_validate(self.stages["planned"])

    @property
    def state(self) -> str:
        """The newest stage."""
        return list(self.stages)[-1]

    def has(self, stage: str, after: str) -> bool:
        """Whether the stage was done, and not before another that was done again since."""
        order = list(self.stages)
        return stage in order and after in order and order.index(stage) > order.index(after)

    @property
    def is_open(self) -> bool:
        """Whether it still holds its intervals, and may go on."""
        return not any(end in self.stages for end in ENDS)


def write(
    spark: "SparkSession",
    settings: "Settings",
    replay: str,
    stage: str,
    run_id: str,
    by: str,
    request: Request,
    detail: Mapping[str, Any],
) -> None:
    """Add a stage to the record."""
    if not lake.exists(settings, TABLE):
        lake.create(spark, settings, TABLE, COLUMNS)
    with lease(settings, TABLE, run_id):
        newest = next((c.record for c in lake.commits(settings, TABLE) if "seq" in c.record), {"seq": 0})
        row = (
            replay,
            stage,
            by,
            request.reason,
            json.dumps(request.as_dict()),
            json.dumps(detail),
            run_id,
            code_version(),
            datetime.now(UTC),
        )
        record = {
            "writer": "replay",
            "seq": newest["seq"] + 1,
            "replay": replay,
            "stage": stage,
            "by": by,
            "request": request.as_dict(),
            "detail": detail,
            "run_id": run_id,
        }
        lake.append(spark.createDataFrame([row], ddl(COLUMNS)), settings, TABLE, ledger.txn(TABLE, record), record)


def read(settings: "Settings", replay: str) -> Replay | None:
    """The replay with this id, or None."""
    return next((found for found in replays(settings) if found.id == replay), None)


def find(settings: "Settings", replay: str) -> Replay:
    """The same.

    Raises:
        Refused: there is none.
    """
    found = read(settings, replay)
    if found is None:
        raise Refused(f"There is no replay {replay}: `lockstep replay show` lists them.")
    return found


def replays(settings: "Settings") -> Iterator[Replay]:
    """All replays, the one that was opened last first."""
    stages: dict[str, dict[str, Any]] = {}
    for commit in lake.commits(settings, TABLE):
        record = commit.record
        if "stage" not in record:
            continue
        known = stages.get(record["replay"], {})
        # Newest first: of a stage that was done again, the last time counts.
        stages[record["replay"]] = known if record["stage"] in known else {record["stage"]: record["detail"]} | known
        if record["stage"] == "planned":
            request = Request.model_validate(record["request"])
            yield Replay(record["replay"], record["by"], request, commit.timestamp, stages.pop(record["replay"]))
