"""What the table of reconciliations remembers of a view: its newest record."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Self

from lockstep.definition import View
from lockstep.ledger.ops_table import OpsTable
from lockstep.reconcile.changed import Compared
from lockstep.reconcile.difference import Cause

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings

COLUMNS = {
    "view": "STRING",
    "window_start": "TIMESTAMP",
    "window_end": "TIMESTAMP",
    "keys": "BIGINT",
    "equal": "BIGINT",
    "changed": "BIGINT",
    "only_live": "BIGINT",
    "only_batch": "BIGINT",
    "verdict": "STRING",
    "sample": "STRING",
    "run_id": "STRING",
    "reconciled_at": "TIMESTAMP",
    "doubled": "BIGINT",
    "causes": "STRING",
}
TABLE = OpsTable("ops.reconciliation", COLUMNS, "reconcile")


@dataclass(frozen=True)
class Reconciliation:
    """One run over one view, as its commit records it.

    Args:
        until: windows that ended by then (UTC) are settled: no later run has to compare them.
        windows: how many windows are settled, over all runs. A view that upserts settles none for good: those of the newest run
            that has compared any.
        unexplained: how many windows differed for no known cause.
        causes: by cause, in how many windows it was found.
        sample: one of the unexplained differences.
        compared: of a view that upserts, the versions of its tables.
    """

    view: str
    until: datetime
    run_id: str
    windows: int
    unexplained: int
    causes: Mapping[Cause, int]
    sample: str | None
    compared: Compared | None = None

    def as_record(self) -> dict[str, Any]:
        """The record for the commit."""
        causes = {cause.value: windows for cause, windows in self.causes.items()}
        return asdict(self) | {"until": self.until.isoformat(), "causes": causes}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Self:
        """Read the record of a commit."""
        return cls(
            view=record["view"],
            until=datetime.fromisoformat(record["until"]),
            run_id=record["run_id"],
            windows=record["windows"],
            unexplained=record["unexplained"],
            causes={Cause(name): windows for name, windows in record["causes"].items()},
            sample=record["sample"],
            compared=Compared(**compared) if (compared := record.get("compared")) else None,
        )


def forget(spark: "SparkSession", settings: "Settings", view: str) -> None:
    """Forget the last reconciliation of a view that is about to be removed. Its rows in ``ops.reconciliation`` stay."""
    if TABLE.newest(settings, view):
        with TABLE.writing(spark, settings, "purge") as commit:
            commit.forget(view)


def last(settings: "Settings", view: View) -> Reconciliation | None:
    """The view's last reconciliation; None before the first. Needs no Spark."""
    record = TABLE.newest(settings, view.name)
    return Reconciliation.from_record(record) if record else None
