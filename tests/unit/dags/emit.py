"""Run a task of two tables in Airflow's context, and print its events as JSON. test_assets.py runs it in a process of its own."""

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, cast

from airflow.sdk import task
from airflow.sdk.execution_time.context import OutletEventAccessors, set_current_context
from tests.support.commits import ledger_record, ranges, write_commit

from lockstep.lineage import assets
from lockstep.settings import load


@dataclass
class DagRun:
    """What a task sees of its run."""

    run_id: str = "run-1"
    start_date: datetime = datetime.now(UTC) - timedelta(minutes=1)


@task(outlets=assets.of(["bronze.clicks", "bronze.page_views"]))
def write_bronze() -> None:
    """Commit to one of the two tables."""
    at = int(datetime.now(UTC).timestamp() * 1000)
    write_commit(load(), "bronze.page_views", 1, ledger_record(ranges({0: (0, 4)})), rows=4, timestamp=at)
    assets.emit()


if __name__ == "__main__":
    operator: Any = write_bronze().operator
    events = OutletEventAccessors()
    with set_current_context(cast(Any, {"task": operator, "dag_run": DagRun(), "outlet_events": events})):
        operator.python_callable()
    told = {asset.name: events[asset].extra for asset in operator.outlets}
    print("RESULT" + json.dumps(told))
