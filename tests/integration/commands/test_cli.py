"""`lockstep commands` sends a command, and says what became of it, what an entity is or was, and why."""

import json

import pytest
from typer.testing import CliRunner

from lockstep.cli.main import app
from lockstep.commands.registry import AGGREGATES
from shop.aggregates.carts import AGGREGATE as CARTS


@pytest.fixture
def carts(bank):
    """The carts of the shop, with topics of their own and processors that run."""
    own = bank(**{field: getattr(CARTS, field) for field in ("initial", "commands", "events", "decide", "evolve")})
    AGGREGATES[own.aggregate.name] = own.aggregate
    with own.deciding():
        yield own.aggregate.name
    del AGGREGATES[own.aggregate.name]


def run(*arguments):
    """The exit code, and the lines that are printed, which are JSON."""
    result = CliRunner().invoke(app, ["commands", *arguments])
    return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


def send(carts, **command):
    code, (outcome,) = run("send", carts, json.dumps({"cart_id": "c1", **command}))
    return code, outcome


def test_a_cart_is_filled_and_the_log_says_why_each_product_is_in_it(carts):
    assert send(carts, type="add", product_id="A", because="search")[0] == 0
    send(carts, type="add", product_id="B")
    _, removed = send(carts, type="remove", product_id="A", because="too expensive")
    send(carts, type="add", product_id="A", because="price alert")
    code, refused = send(carts, type="set_quantity", product_id="C", quantity=2)
    assert (code, refused["reason"], refused["version"]) == (1, "not_in_cart", 4)
    code, stale = send(carts, type="check_out", expected_version=3)
    assert (code, stale["reason"]) == (1, "wrong_version")

    assert run("show", carts, "c1")[1][0]["state"] == {"quantities": {"A": 1, "B": 1}, "checked_out": False}
    assert run("show", carts, "c1", "--version", "3")[1][0]["state"]["quantities"] == {"B": 1}
    assert run("show", carts, "c1", "--time", removed["at"])[1][0]["version"] == 3
    assert run("show", carts, "c1", "--time", "2026-01-01")[1][0]["version"] == 0
    why = run("history", carts, "c1", "--where", "product_id=A")[1]
    assert [(step["event"]["type"], step["event"]["because"]) for step in why] == [
        ("added", "search"),
        ("removed", "too expensive"),
        ("added", "price alert"),
    ]
    assert [o["reason"] for o in run("outcomes", carts, "--rejected")[1]] == ["not_in_cart", "wrong_version"]
    assert run("outcomes", carts, "--command-id", removed["command_id"])[1] == [removed]


@pytest.mark.parametrize("command", ["{", '{"type": "rob"}', '{"type": "add", "cart_id": "c1"}', "[]"])
def test_what_is_no_command_is_refused_before_it_is_sent(carts, command):
    result = CliRunner().invoke(app, ["commands", "send", carts, command])
    assert result.exit_code == 1
    assert "Nothing was sent" in str(result.exception)
    assert run("outcomes", carts)[1] == []


def test_a_version_that_is_not_there_yet_is_refused(carts):
    result = CliRunner().invoke(app, ["commands", "show", carts, "c1", "--version", "1"])
    assert "no version 1 yet" in str(result.exception)
