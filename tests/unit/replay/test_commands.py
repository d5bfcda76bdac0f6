"""`lockstep replay` takes the words of a file as options, refuses what makes no sense, and never with a traceback."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from lockstep.cli.replay import app
from lockstep.errors import LockstepError
from lockstep.replay.request import load

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


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--view", "nothing"], "There is no view nothing"),
        (["--layer", "platinum"], "layers"),
        (["--offsets", "{"], "is not JSON"),
        (["--topic", "../x"], "looks like a path"),
        (["--approve", "nobody"], "approve"),
    ],
)
def test_what_makes_no_sense_is_refused_with_a_sentence(options, says):
    error = CliRunner().invoke(app, ["plan", *DAY, *options]).exception
    assert isinstance(error, LockstepError)
    assert says in str(error)


def test_without_any_replay_the_list_is_empty_and_an_id_unknown():
    error = CliRunner().invoke(app, ["show", "abcd1234"]).exception
    assert isinstance(error, LockstepError)
    assert "There is no replay abcd1234" in str(error)
