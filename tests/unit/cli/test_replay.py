"""`lockstep replay` takes the fields of a file as options, and refuses what is not allowed with a sentence, not a traceback."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lockstep.cli.replay import app, console
from lockstep.errors import LockstepError
from lockstep.replay.parse import load
from lockstep.replay.plan import Plan
from lockstep.replay.record import TABLE
from lockstep.replay.request import Request

START, END = datetime(2026, 11, 10, tzinfo=UTC), datetime(2026, 11, 11, tzinfo=UTC)
DAY = ["--from", "2026-11-10", "--to", "2026-11-11", "--reason", "a test of options"]


@pytest.fixture(autouse=True)
def empty_lake(monkeypatch, tmp_path):
    monkeypatch.setenv("LOCKSTEP_HOME", str(tmp_path))
    monkeypatch.setenv("LOCKSTEP_LAKE", str(tmp_path / "lake"))


def test_options_are_written_down_as_a_file_with_the_same_words(tmp_path: Path):
    file = tmp_path / "day.yaml"
    more = ["--view", "page_views_per_minute", "--approve", "by_rule", "--max-changed-windows", "3", "--dry-run"]
    result = CliRunner().invoke(app, ["plan", *DAY, *more, "--save", str(file)])
    assert result.exit_code == 0, result.output
    assert "Nothing: no table has anything" in result.output
    request = load(file)
    assert (request.views, request.approve, request.max_changed_windows) == (("page_views_per_minute",), "by_rule", 3)
    assert request.dry_run
    assert CliRunner().invoke(app, ["plan", str(file)]).exit_code == 0


def test_every_field_of_a_request_is_an_option():
    text = CliRunner().invoke(app, ["plan", "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"}).output
    singular = {"topics": "topic", "views": "view", "layers": "layer"}
    fields = [field.alias or name for name, field in Request.model_fields.items()]
    options = [f"--{singular.get(name, name).replace('_', '-')}" for name in fields]
    assert [option for option in options if f"{option} " not in text] == []
    assert '{"0": [start, end], …}' in text, "brackets are no markup"


def test_offsets_are_given_as_json():
    asked = ["--topic", "page_views", "--reason", "one bad batch", "--offsets", '{"0": [5, 9]}']
    error = CliRunner().invoke(app, ["plan", *asked]).exception
    assert "Offsets [5, 9) of page_views-0 are out of range: its ledger has nothing" in str(error)


@pytest.mark.parametrize("command", [["show"], ["show", "abcd1234"]])
def test_a_reason_is_shown_as_it_was_written(ops_records, monkeypatch, command):
    # The list has room for the reason in a wide terminal only.
    monkeypatch.setattr(console, "width", 200)
    request = Request.model_validate({"reason": "[red]R&D's[/red] {{ x }}\x1b[2J", "from": START, "to": END})
    record = {"replay": "abcd1234", "stage": "planned", "by": "[b]me[/b]", "request": request.as_dict()}
    plan = Plan(layers=("gold",), parts=(), targets=())
    ops_records.write(TABLE.name, record | {"detail": plan.model_dump(mode="json")})
    text = CliRunner().invoke(app, command).output
    assert r"[red]R&D's[/red] {{ x }}\x1b[2J" in text
    assert "\x1b" not in text


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--view", "nothing"], "There is no view nothing"),
        (["--layer", "platinum"], "layers"),
        (["--offsets", "{"], "is not JSON"),
        (["--topic", "../x"], "topics.0: string should match pattern"),
        (["--approve", "nobody"], "approve"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(options, says):
    error = CliRunner().invoke(app, ["plan", *DAY, *options]).exception
    assert isinstance(error, LockstepError)
    assert says in str(error)


def test_an_unknown_id_is_refused(ops_records):
    error = CliRunner().invoke(app, ["show", "abcd1234"]).exception
    assert isinstance(error, LockstepError)
    assert "There is no replay abcd1234" in str(error)
