"""What an expectation does when it fails is said in its suite's file, and is a part of the contract if it puts rows aside."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lockstep import contracts, version
from lockstep import settings as configuration
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.version import definition_version
from lockstep.project import ProjectInvalid
from lockstep.quality import suites
from lockstep.settings import Settings
from lockstep.suite_files import Severity, SuiteMissing, severity_of

AMOUNT = {"type": "expect_column_values_to_be_between", "kwargs": {"column": "amount", "min_value": 0}}
ASIDE = AMOUNT | {"meta": {"quarantine": True}}
UNIQUE = {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "event_id"}, "meta": {"quarantine": True}}
# Of this project, loaded before a test puts another one in its place.
PAYMENTS, PAGE_VIEWS, VIEW = CONTRACTS["payments"], CONTRACTS["page_views"], VIEWS["page_views_per_minute"]
Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    """Write the suite of a table of another project, whose settings are in force."""
    monkeypatch.setattr(configuration, "load", lambda: Settings(project=tmp_path, package="shop"))

    def of(table: str, *expectations: dict[str, Any]) -> Path:
        layer, _, name = table.partition(".")
        file = tmp_path / "expectations" / layer / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({"name": table, "expectations": expectations}))
        return file

    return of


def test_the_severity_is_the_field_of_great_expectations_and_our_mark_in_meta() -> None:
    assert severity_of(AMOUNT) is Severity.FAIL
    assert severity_of(AMOUNT | {"severity": "critical"}) is Severity.FAIL
    assert severity_of(AMOUNT | {"severity": "warning"}) is Severity.WARN
    assert severity_of(AMOUNT | {"severity": "info"}) is Severity.WARN
    assert severity_of(ASIDE) is Severity.QUARANTINE
    assert severity_of(ASIDE | {"severity": "critical"}) is Severity.QUARANTINE


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (AMOUNT | {"severity": "fatal"}, "there is no severity 'fatal': write one of critical, warning, info"),
        (ASIDE | {"severity": "warning"}, "leave one of the two out"),
        (AMOUNT | {"meta": {"quarantine": "yes"}}, "write true, or leave it out"),
    ],
)
def test_a_severity_that_says_nothing_is_refused_with_file_and_expectation(
    write: Write, wrong: dict[str, Any], why: str
) -> None:
    write("gold.sales", wrong)
    with pytest.raises(SuiteMissing, match=re.escape(why)) as refusal:
        suites.load(configuration.load(), "gold.sales")
    message = str(refusal.value)
    assert message.startswith("expectations/gold/sales.json: expect_column_values_to_be_between(column='amount'")


def test_a_contract_has_the_rules_of_its_suite(write: Write) -> None:
    write("silver.payments", AMOUNT, ASIDE)
    [rule] = contracts.with_rules(PAYMENTS, configuration.load()).rules
    assert str(rule) == "expect_column_values_to_be_between(column='amount', min_value=0)"


def test_a_stream_without_a_suite_has_no_rules(write: Write) -> None:
    assert contracts.with_rules(PAYMENTS, configuration.load()).rules == ()


def test_an_expectation_that_cannot_put_rows_aside_refuses_the_stream_with_file_and_way_out(write: Write) -> None:
    write("silver.payments", UNIQUE)
    with pytest.raises(ProjectInvalid) as refusal:
        contracts.with_rules(PAYMENTS, configuration.load())
    message = str(refusal.value)
    assert message.startswith("expectations/silver/payments.json: expect_column_values_to_be_unique(column='event_id')")
    assert "leave out meta.quarantine, then it shuts the gate" in message


def test_a_suite_that_cannot_be_read_refuses_its_stream(write: Write) -> None:
    write("silver.payments").write_text("{")
    with pytest.raises(ProjectInvalid, match=r"silver/payments\.json is not JSON"):
        contracts.with_rules(PAYMENTS, configuration.load())


def test_rows_of_gold_cannot_be_put_aside(write: Write) -> None:
    file = write("gold.sales", AMOUNT, ASIDE)
    ((named, reason),) = suites.problems(configuration.load()).items()
    assert named == str(file)
    assert "only rows of silver can be put aside" in reason
    assert "ask it of the stream's suite" in reason


def test_a_changed_rule_is_another_version_of_each_view_that_reads_the_stream(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    write("silver.page_views", ASIDE | {"kwargs": {"column": "page", "min_value": "/"}})
    monkeypatch.setitem(CONTRACTS, "page_views", replace(PAGE_VIEWS, rules=()))
    before = definition_version(VIEW)
    monkeypatch.setitem(CONTRACTS, "page_views", contracts.with_rules(PAGE_VIEWS, configuration.load()))
    assert definition_version(VIEW) != before


def test_the_version_of_the_code_follows_what_puts_rows_aside_and_nothing_else_of_a_suite(write: Write) -> None:
    def digest() -> str:
        version.code_version.cache_clear()
        return version.code_version()

    try:
        write("silver.payments", AMOUNT)
        before = digest()
        write("silver.payments", AMOUNT | {"severity": "warning"})
        assert digest() == before
        write("silver.payments", ASIDE)
        assert digest() != before
    finally:
        version.code_version.cache_clear()
