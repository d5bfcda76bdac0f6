"""`lockstep --env NAME`: what an environment has no part in is refused, before anything is asked of a server."""

import os
from pathlib import Path

import pytest
from click.testing import Result
from tests.support.ports import own_ports
from typer.testing import CliRunner

from lockstep.cli import main
from lockstep.cli.main import app
from lockstep.errors import LockstepError


@pytest.fixture(autouse=True)
def _own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own_ports(monkeypatch, tmp_path)
    # Set by the command: taken back after the test.
    monkeypatch.setenv("LOCKSTEP_ENV", "")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def refusal(*arguments: str) -> str:
    error = run(*arguments).exception
    assert isinstance(error, LockstepError), error
    return str(error)


@pytest.mark.parametrize("command", sorted(main._COMMANDS.keys() - {*main._OF_ENVIRONMENTS}))
def test_what_runs_or_writes_in_production_is_refused_in_an_environment(command: str) -> None:
    assert f"`lockstep {command}` is of production, and the environment dev is meant" in refusal(
        "--env", "dev", command
    )


def test_the_simulator_does_not_write_into_the_topics_of_production_for_an_environment() -> None:
    assert "is of production" in refusal("--env", "dev", "simulate")


def test_the_variable_names_an_environment_as_the_option_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_ENV", "dev")
    assert "the environment dev is meant" in refusal("up")


def test_the_option_wins_over_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCKSTEP_ENV", "dev")
    assert "the environment other is meant" in refusal("--env", "other", "up")


@pytest.mark.parametrize("command", ["diff", "remove"])
def test_what_only_an_environment_has_asks_for_its_name(command: str) -> None:
    assert refusal(command) == f"`lockstep {command}` is of an environment: name it, `lockstep --env NAME {command}`."


def test_production_has_no_sample() -> None:
    assert "`lockstep --env NAME apply --since …`" in refusal("apply", "--since", "2h")


@pytest.mark.parametrize("name", ["Dev", "de-v", "../dev"])
def test_a_name_that_cannot_be_one_is_refused_with_the_rule(name: str) -> None:
    result = run("--env", name, "diff")
    assert result.exit_code == 2
    assert "is no name of an environment" in result.output
    assert os.environ["LOCKSTEP_ENV"] == ""


def test_help_says_that_an_environment_is_batch_only() -> None:
    assert "in batch only" in " ".join(run("--help").output.replace("│", " ").split())
    assert "batch only" in " ".join(run("apply", "--help").output.replace("│", " ").split())
