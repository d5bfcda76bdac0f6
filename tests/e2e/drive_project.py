"""Run in a project outside of the checkout: send made-up records, start the DAGs, and wait until every view serves its rows.

A program of its own, because it imports the platform out of the wheel: ``python drive_project.py SECONDS``, in the project.
"""

import sys
from contextlib import closing
from datetime import timedelta
from importlib import import_module
from pathlib import Path
from typing import Any

from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed

from lockstep import project
from lockstep.airflow_api import connected
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import serving_of
from lockstep.kafka_clients import producer
from lockstep.reconcile.record import last
from lockstep.settings import Settings, load
from lockstep.testing import Sent, comparable, made_up

DAGS = ("ingest", "refine", "reconcile", "marts", "rollup_daily", "maintain")
# What serving says of a row beside the view's columns.
BESIDE = {"_layer", "_final", "_as_of"}


def send(settings: Settings, stream: str, log: list[Sent]) -> None:
    """Send a log to the stream's topic, each record to its partition, and then heartbeats that close all of its windows."""
    topic, newest = CONTRACTS[stream].topic, max(record.arrival for record in log)
    with closing(producer(settings)) as client:
        for record in log:
            stamp = int(record.arrival.timestamp() * 1000)
            client.send(topic, record.payload, partition=record.partition, timestamp_ms=stamp)
        for partition in range(CONTRACTS[stream].partitions):
            stamp = int((newest + timedelta(hours=1)).timestamp() * 1000)
            client.send(topic, b"{}", partition=partition, timestamp_ms=stamp, headers=[("lockstep-heartbeat", b"1")])
        client.flush(30)


def rows_of_the_oracle(view: View, sent: dict[str, list[Sent]]) -> list[dict[str, Any]]:
    """What the project's own oracle makes of the records."""
    tests = f"tests.{project.package()}.oracles"
    record = import_module(f"{tests}.record").Record
    records = {
        stream: [record(stream, s.partition, s.offset, s.arrival, s.value) for s in log] for stream, log in sent.items()
    }
    rows: list[dict[str, Any]] = import_module(f"{tests}.{view.name}").rows(records)
    return rows


def serves(settings: Settings, view: View, expected: list[dict[str, Any]]) -> bool:
    """Whether the view's merged answer has these rows, all of them final."""
    with connect(settings, "test") as spark:
        if not spark.catalog.tableExists(serving_of(view)):
            return False
        rows = [row.asDict(recursive=True) for row in spark.table(serving_of(view)).collect()]
    found, wanted = comparable(rows, BESIDE | ({"at"} - {*view.key})), comparable(expected)
    print(
        f"{view.name}: {(found & wanted).total()} of {wanted.total()} rows, {(found - wanted).total()} others",
        flush=True,
    )
    return found == wanted and all(row["_final"] for row in rows)


def reconciled(settings: Settings, view: View) -> bool:
    """Whether both layers of the view have been compared."""
    comparison = last(settings, view)
    return comparison is not None and comparison.windows > 0


def main(seconds: float) -> None:
    """Send, unpause and wait."""
    sys.path.insert(0, str(Path.cwd()))
    settings = load()
    views = list(VIEWS.values())
    sent = {stream: log for view in views for stream, log in made_up(view).items()}
    for stream, log in sent.items():
        send(settings, stream, log)
    patiently = Retrying(stop=stop_after_delay(seconds), wait=wait_fixed(2), retry=retry_if_not_result(bool))
    with connected(settings) as airflow:
        patiently(lambda: airflow.dags().keys() >= {*DAGS})
        for dag in airflow.dags().values():
            if dag.schedule:
                airflow.unpause(dag.name)
    for view in views:
        expected = rows_of_the_oracle(view, sent)
        assert len(expected) > 10, view.name
        patiently(serves, settings, view, expected)
    with connected(settings) as airflow:
        airflow.trigger("reconcile")
    for view in views:
        patiently(reconciled, settings, view)


if __name__ == "__main__":
    main(float(sys.argv[1]))
