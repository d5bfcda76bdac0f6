"""What the outcomes of actions mean is in their fields, and their texts are for people."""

import pytest
from typer.testing import CliRunner

from lockstep.checkpoints import actions
from lockstep.checkpoints.actions import keeps_query_from_starting
from lockstep.checkpoints.compatible import Verdict
from lockstep.checkpoints.fields import DESCRIPTIONS, Action
from lockstep.checkpoints.problems import Problem
from lockstep.checkpoints.verify import Finding, Whole
from lockstep.cli.checkpoints import app

WHOLE = Whole("a", 2)
REPAIRABLE = Finding("a", 2, Problem("offsets/1", "is missing", b"v1"))
BROKEN = Finding("a", 2, Problem("state/0/0/1.changelog", "is missing"))
RESUMES, INCOMPATIBLE = Verdict("a", 2, ()), Verdict("a", 2, ("it differs",))


def test_every_action_has_a_description():
    assert set(DESCRIPTIONS) == set(Action)


def test_only_a_broken_or_an_incompatible_checkpoint_keeps_a_query_from_starting():
    outcomes = [WHOLE, REPAIRABLE, BROKEN, RESUMES, INCOMPATIBLE]
    assert [outcome for outcome in outcomes if keeps_query_from_starting(outcome)] == [BROKEN, INCOMPATIBLE]


def test_people_read_what_was_found():
    assert [str(outcome) for outcome in (WHOLE, REPAIRABLE, BROKEN)] == [
        "whole   a: generation 2",
        "mends   a: generation 2: offsets/1 is missing",
        "BROKEN  a: generation 2: state/0/0/1.changelog is missing",
    ]


@pytest.mark.parametrize(
    ("command", "outcomes", "exit_code"),
    [
        ("verify", [WHOLE, WHOLE], 0),
        ("verify", [WHOLE, REPAIRABLE], 1),
        ("verify", [BROKEN], 1),
        ("compatible", [RESUMES], 0),
        ("compatible", [RESUMES, INCOMPATIBLE], 1),
    ],
)
def test_the_exit_code_of_a_command_follows_from_its_outcomes(monkeypatch, command, outcomes, exit_code):
    monkeypatch.setattr(actions, "carry_out", lambda *_: outcomes)
    result = CliRunner().invoke(app, [command])
    assert result.exit_code == exit_code
    assert result.output.splitlines() == [str(outcome) for outcome in outcomes]
