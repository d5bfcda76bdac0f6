"""`lockstep status` exits with 1 when not all is right."""

import json
from pathlib import Path

import pytest
import typer
from click.testing import Result
from tests.support.ports import own_ports
from typer.testing import CliRunner

from lockstep.cli.main import app
from lockstep.cli.status import report
from lockstep.status.model import Problem, Status


def run(status: Status, *options: str) -> Result:
    """The command, with a status that is given instead of gathered."""
    command = typer.Typer()

    @command.command()
    def show(as_json: bool = typer.Option(False, "--json")) -> None:
        report(status, as_json)

    return CliRunner().invoke(command, list(options))


def test_the_exit_code_is_0_when_all_is_right() -> None:
    result = run(Status([], []))
    assert (result.exit_code, result.output.splitlines()[0]) == (0, "All is right.")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_the_exit_code_is_1_when_there_is_a_problem(options: tuple[str, ...]) -> None:
    result = run(Status([], [], problems=[Problem("service:kafka", "kafka is stopped", "start it")]), *options)
    assert result.exit_code == 1
    assert "kafka is stopped" in result.output


def test_a_view_that_nobody_knows_is_a_problem_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_ports(monkeypatch, tmp_path)
    monkeypatch.setenv("LOCKSTEP_VIEWS", "page_views_per_minut")
    result = CliRunner().invoke(app, ["status", "--json"])
    problems = {problem["key"]: problem["what"] for problem in json.loads(result.stdout)["problems"]}
    assert problems["definition:LOCKSTEP_VIEWS"].startswith("There is no view page_views_per_minut")


def test_what_does_not_answer_is_a_problem_and_raises_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_ports(monkeypatch, tmp_path)
    result = CliRunner().invoke(app, ["status", "--json"])
    assert result.exit_code == 1, result.output
    problems = {problem["key"]: problem["line"] for problem in json.loads(result.stdout)["problems"]}
    assert problems["service:kafka"] == "kafka is stopped: see `lockstep logs kafka` and `lockstep doctor`"
    assert problems["unreachable:airflow"].startswith("Airflow's login at")
    assert problems["unreachable:kafka"].startswith("the broker did not list the offsets of the topics")
    assert problems["unreachable:postgres"].startswith("the control database does not answer")
