"""Every fault is found and attributed to its cause. Each is in a minute of its own, and the other minutes are equal."""

import json
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any
from xml.etree.ElementTree import parse

import pytest
from pyspark import cloudpickle
from tests.integration.reconcile.test_run import pretend_live_is_at_the_end
from tests.support.shop import START, Shop
from typer.testing import CliRunner

from lockstep import lake
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.cli.main import app
from lockstep.contracts import CONTRACTS
from lockstep.control.intervals import claim, release
from lockstep.definition import Event, Input, Keyed, View
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import gold_of
from lockstep.definition.version import definition_version
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import ensure_topics
from lockstep.reconcile.difference import Cause
from lockstep.reconcile.record import last
from lockstep.reconcile.run import reconcile
from lockstep.refine.silver import refine

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


@dataclass(frozen=True)
class Fault:
    """A change to the rows of a minute, and how reconciliation must report it.

    Args:
        statement: the SQL that makes the change; empty: the fault is in the events, or there is none.
        kind: the column of ``ops.reconciliation`` that counts the key.
        corrected: whether a correction is published.
    """

    statement: str
    kind: str
    verdict: str = "unexplained"
    causes: str | None = None
    corrected: bool = True


QUIET = timedelta(seconds=20)


def _visit(state: Any, event: Event) -> tuple[Any, list[Any]]:
    before = state or {"page": event.data["page"], "started_at": event.time, "views": 0}
    return before | {"views": before["views"] + 1, "last": event.time}, []


def _until_quiet(state: Any) -> datetime:
    last: datetime = state["last"]
    return last + QUIET


def _visited(state: Any, _: datetime) -> tuple[Any, list[Any]]:
    return None, [{name: state[name] for name in ("page", "started_at", "views")}]


def windowed(name: str, stream: str) -> View:
    """The views of each page in each minute."""
    return replace(VIEWS["page_views_per_minute"], name=name, input=stream)


def keyed(name: str, stream: str) -> View:
    """The views of each page without 20 seconds of quiet between them: all that one minute of the test has."""
    return Keyed(
        name=name,
        columns={"page": "STRING", "started_at": "TIMESTAMP", "views": "BIGINT"},
        key=("page", "started_at"),
        allowed_lateness=timedelta(seconds=5),
        inputs=(Input(stream, "page", ("page",)),),
        process=_visit,
        timer=_until_quiet,
        on_timer=_visited,
    )


WHOLE = "{time} >= {minute} AND {time} < {minute} + INTERVAL 1 MINUTE"
HOME = f"{WHOLE} AND page = '/'"
FAULTS = {
    "nothing": Fault("", "equal", "equal", corrected=False),
    "a live row dropped": Fault(f"DELETE FROM {{live}} WHERE {HOME}", "only_batch"),
    "a live row doubled": Fault(f"INSERT INTO {{live}} SELECT * FROM {{live}} WHERE {HOME}", "doubled"),
    "a live row changed": Fault(f"UPDATE {{live}} SET views = 9 WHERE {HOME}", "changed"),
    "a window missing live": Fault(f"DELETE FROM {{live}} WHERE {WHOLE}", "only_batch"),
    "a batch row dropped": Fault(f"DELETE FROM {{gold}} WHERE {HOME}", "only_live", corrected=False),
    "a window missing in batch": Fault(f"DELETE FROM {{gold}} WHERE {WHOLE}", "only_live", corrected=False),
    "a late row counted": Fault(f"UPDATE {{live}} SET views = 3 WHERE {HOME}", "changed", "explained", Cause.LATE),
    "a duplicate counted": Fault(
        f"UPDATE {{live}} SET views = 3 WHERE {HOME}", "changed", "explained", Cause.DUPLICATE
    ),
    "a quarantined row counted": Fault(
        f"UPDATE {{live}} SET views = 3 WHERE {HOME}", "changed", "explained", Cause.QUARANTINED
    ),
    "another definition live": Fault(
        f"UPDATE {{live}} SET views = 7, _updated_at = now() WHERE {HOME}", "changed", "explained", Cause.OTHER_CODE
    ),
    # After the replay, the row is unexplained, and is corrected.
    "a replay at work": Fault(f"UPDATE {{live}} SET views = 8 WHERE {HOME}", "changed", "explained", Cause.REPLAY),
}
METADATA = "spark.databricks.delta.commitInfo.userMetadata"


def minute_of(fault: str) -> int:
    return list(FAULTS).index(fault)


@pytest.fixture(scope="module", params=[windowed, keyed], ids=lambda view_of: view_of.__name__)
def runs(request, settings, tmp_path_factory) -> Iterator[Any]:
    """Both layers agree on every minute. Then each fault is made in its minute, and the layers are compared again."""
    name = f"page_views_{uuid.uuid4().hex[:8]}"
    contract = CONTRACTS[name] = replace(CONTRACTS["page_views"], name=name, topic=name)
    view = request.param(f"faults_{name[-8:]}", name)
    ensure_topics(settings, {name: contract})
    with connect(settings, "test") as spark:
        _play(Shop(settings, contract))
        ingest(spark, settings, contract, "run")
        refine(spark, settings, contract, "run")
        roll_up(spark, settings, view, "run")
        spark.conf.set(METADATA, json.dumps({"writer": "live", "definition": definition_version(view)}))
        spark.sql(
            f"CREATE TABLE live.{view.name} USING delta LOCATION '{lake.path(settings, f'live.{view.name}')}' "
            f"AS SELECT *, current_timestamp() AS _updated_at FROM gold.{view.name}"
        )
        spark.conf.unset(METADATA)
        pretend_live_is_at_the_end(settings, contract, view)
        before = reconcile(spark, settings, view, "before")
        for fault in FAULTS:
            _make(spark, view, fault)
        replaying = START + timedelta(minutes=minute_of("a replay at work"))
        claim(settings, f"replay-{name}", {gold_of(view): (replaying, replaying + timedelta(minutes=1))})
        after = reconcile(spark, settings, view, "after", again_since=START)
        release(settings, f"replay-{name}")
        junit_file = tmp_path_factory.mktemp("junit") / "reconcile.xml"
        VIEWS[view.name] = view
        again = CliRunner().invoke(app, ["reconcile", view.name, "--junit", str(junit_file)])
        unexplained = last(settings, view).unexplained
        rows = {
            table: [
                row
                for row in spark.table(table).collect()
                if view.name in (row.asDict().get("view"), row.asDict().get("subject"))
            ]
            for table in ("ops.reconciliation", "ops.corrections", "ops.alerts")
        }
    yield SimpleNamespace(before=before, after=after, again=again, unexplained=unexplained, rows=rows, junit=junit_file)
    del CONTRACTS[name], VIEWS[view.name]


def _play(shop: Shop) -> None:
    """In every minute, two views of the front page and one of another page, and the events of some faults."""
    for n, fault in enumerate(FAULTS):
        second = n * 60
        for event, page in {"a": "/", "b": "/", "c": "/about"}.items():
            shop.view(f"{event}{n}", second + 10, page=page)
        if fault == "a late row counted":
            shop.view(f"late{n}", second + 10, arrives_after=30)
        if fault == "a duplicate counted":
            shop.view(f"a{n}", second + 10, arrives_after=2)
        if fault == "a quarantined row counted":
            shop.view(f"ahead{n}", second + 10, arrives_after=-400)
    shop.heartbeat(len(FAULTS) * 60 + 600)
    shop.flush()


def _make(spark: Any, view: Any, fault: str) -> None:
    minute = START + timedelta(minutes=minute_of(fault))
    tables = {"live": f"live.{view.name}", "gold": f"gold.{view.name}"}
    names = tables | {"time": view.time_column, "minute": f"TIMESTAMP '{minute:%F %T}'"}
    if fault == "another definition live":
        spark.conf.set(METADATA, json.dumps({"writer": "live", "definition": "another"}))
    if FAULTS[fault].statement:
        spark.sql(FAULTS[fault].statement.format(**names))
    spark.conf.unset(METADATA)


def rows_of(runs: Any, table: str, fault: str, **values: str) -> list[Any]:
    start = (START + timedelta(minutes=minute_of(fault))).replace(tzinfo=None)
    rows = [row for row in runs.rows[table] if row["window_start"] == start]
    return [row for row in rows if all(row[key] == value for key, value in values.items())]


def test_before_the_faults_both_layers_agree(runs):
    assert (runs.before.verdict, runs.before.windows) == ("equal", len(FAULTS))


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_found_and_attributed_to_its_cause(runs, fault):
    (row,) = rows_of(runs, "ops.reconciliation", fault, run_id="after")
    expected = FAULTS[fault]
    assert (row["verdict"], row["causes"]) == (expected.verdict, expected.causes)
    assert row[expected.kind] >= 1
    assert row["keys"] == row["equal"] + (row["keys"] if "window missing" in fault else expected.kind != "equal")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_live_row_that_was_wrong_is_corrected_once_and_a_batch_row_is_not(runs, fault):
    corrections = rows_of(runs, "ops.corrections", fault)
    assert bool(corrections) == FAULTS[fault].corrected
    keys = [row["key"] for row in corrections]
    assert len(keys) == len(set(keys)), "the second run must not publish it again"
    assert all('"views":2' in row["batch"] or '"views":1' in row["batch"] for row in corrections)


def test_an_unexplained_difference_raises_one_alert_and_stays_until_it_is_repaired(runs):
    unexplained = [fault for fault, f in FAULTS.items() if f.verdict == "unexplained"]
    assert (runs.after.verdict, runs.after.unexplained) == ("unexplained", len(unexplained))
    assert runs.unexplained == len(unexplained) + 1, "the replay is over, and explains nothing any more"
    (alert,) = runs.rows["ops.alerts"]
    assert alert["kind"] == "unexplained difference"
    assert "no known cause" in alert["text"]


def test_each_cause_is_counted(runs):
    causes = (Cause.LATE, Cause.DUPLICATE, Cause.QUARANTINED, Cause.OTHER_CODE, Cause.REPLAY)
    assert runs.after.causes == dict.fromkeys(causes, 1)


def test_the_command_reports_in_the_terminal_in_junit_and_by_its_exit_code(runs):
    assert runs.again.exit_code == 1, runs.again.output
    assert "no known cause" in " ".join(runs.again.output.split())
    cases = list(parse(runs.junit).iter("testcase"))  # noqa: S314
    failures = [case.get("name") for case in cases if case.find("failure") is not None]
    assert len(failures) == 1 + runs.unexplained + 2, "one for all, and two windows miss both of their keys"
