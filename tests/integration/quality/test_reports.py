"""What the gates have found can be read without Spark, on the command line and as pages; and rows propose a suite."""

import json
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from lockstep import settings as configuration
from lockstep.cli.main import app
from lockstep.definition.registry import VIEWS
from lockstep.ingest.bronze import ingest
from lockstep.quality import docs, reports, suites
from lockstep.quality.gate import GateFailed, run_gates
from lockstep.quality.profile import profile
from lockstep.refine.silver import refine
from lockstep.suite_files import suite_text

PAGES = {"type": "expect_column_values_to_be_in_set", "kwargs": {"column": "page", "value_set": ["/"]}}
DEVICES = {
    "type": "expect_column_values_to_be_in_set",
    "kwargs": {"column": "device", "value_set": ["mobile"]},
    "severity": "warning",
}
ROWS = {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}}


@pytest.fixture
def settings(settings, tmp_path, monkeypatch):
    """The settings of a project of the test's own, with a suite, which are those of the command line too."""
    assert VIEWS, "those of this project, loaded before its settings are changed"
    own = settings.model_copy(update={"project": tmp_path})
    monkeypatch.setattr(configuration, "load", lambda: own)
    return own


@pytest.fixture
def checked(spark, settings, stream, shop):
    """A table whose gate has passed with a warning, and then failed."""
    table = f"silver.{stream.name}"
    file = suites.suite_file(settings, table)
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"name": table, "expectations": [PAGES, DEVICES, ROWS]}))
    for number, page in enumerate(["/", "/wrong"]):
        shop.view(f"e{number}", number + 1, page=page, device="toaster")
        shop.flush()
        ingest(spark, settings, stream, "test")
        refine(spark, settings, stream, "test")
        if page == "/":
            run_gates(spark, settings, [table], "run-0")
        else:
            with pytest.raises(GateFailed):
                run_gates(spark, settings, [table], "run-1")
    return table


def test_the_history_of_a_gate_has_every_check_with_its_numbers(settings, checked):
    since = datetime.now(UTC) - timedelta(hours=1)
    (failed, newest), (passed, oldest) = reports.outcomes(settings, since, table=checked)
    assert (newest, oldest) == ("run-1", "run-0")
    assert (passed.success, passed.verdict.warned) == (True, 1)
    pages, devices, rows = failed.results
    assert (pages.success, pages.unexpected, pages.elements, pages.columns) == (False, 1, 1, ("page",))
    assert pages.reason.endswith("such as ['/wrong']")
    assert (devices.severity.value, devices.unexpected) == ("warn", 1)
    assert (rows.observed, rows.unexpected) == ("1", None)
    assert reports.outcomes(settings, since, until=since, table=checked) == []


def test_the_command_line_shows_the_newest_outcomes_and_the_trend_of_a_table(settings, checked):
    listed = CliRunner().invoke(app, ["quality", "list"], env={"COLUMNS": "300"})
    assert listed.exit_code == 1, "a gate is shut"
    assert f"{checked}" in listed.output
    assert "FAILED 1 of 3 checks on 1 rows, 1 warning" in listed.output
    shown = CliRunner().invoke(app, ["quality", "show", checked], env={"COLUMNS": "300"})
    assert shown.exit_code == 0, shown.output
    assert "run-0" in shown.output
    assert "run-1" in shown.output
    [line] = [line for line in shown.output.splitlines() if line.startswith("fail") and "'page'" in line]
    assert line.rstrip().endswith(" █"), "the first run held, the second did not"
    unknown = CliRunner().invoke(app, ["quality", "show", checked, "--day", "2020-01-01"])
    assert isinstance(unknown.exception, Exception)
    assert "No gate has checked" in str(unknown.exception)


def test_the_gate_has_written_the_pages_and_they_can_be_made_again(settings, checked):
    page = docs.page_of(settings, checked)
    first = page.read_text()
    assert "run-0" in first
    page.unlink()
    made = CliRunner().invoke(app, ["quality", "docs"])
    assert made.exit_code == 0, made.output
    assert "run-1" in page.read_text()


def test_the_rows_of_a_table_propose_a_suite_that_they_meet(spark, settings, checked, stream):
    proposed = profile(spark, settings, checked)
    text = suite_text(checked, "Proposed.", proposed)
    suites.suite_file(settings, checked).write_text(text)
    [outcome] = run_gates(spark, settings, [checked], "run-2")
    assert outcome.success
    assert outcome.warned == ()
    assert {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "event_id"}} in proposed
    assert {"page", "event_id", "_offset"} <= {
        one["kwargs"]["column"] for one in proposed if one["type"].endswith("not_be_null")
    }
    sets = {one["kwargs"]["column"]: one for one in proposed if one["type"].endswith("in_set")}
    assert sets["page"]["kwargs"]["value_set"] == ["/", "/wrong"]
    assert sets["page"]["severity"] == "warning"
