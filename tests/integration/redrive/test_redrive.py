"""A row of quarantine goes back to its topic corrected, and once, wherever the command was killed."""

import json
from dataclasses import replace

import pytest
from confluent_kafka import Producer
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed
from tests.support.slow import slow
from typer.testing import CliRunner

from lockstep import settings as configuration
from lockstep.cli.main import app
from lockstep.contracts import CONTRACTS
from lockstep.contracts.rules import rule_of
from lockstep.ingest.bronze import ingest
from lockstep.ingest.offsets import topic_offsets
from lockstep.redrive import run
from lockstep.redrive.rows import HEADER, RedriveRefused, with_fields
from lockstep.refine.silver import refine

PAGES = {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "page", "regex": "^/"}}


@pytest.fixture
def aside(spark, settings, stream, shop, monkeypatch):
    """A stream of which two rows are in quarantine, by a rule."""
    contract = replace(stream, rules=(rule_of(PAGES),))
    monkeypatch.setitem(CONTRACTS, stream.name, contract)
    for number, page in enumerate(["/", "bad", "worse"]):
        shop.view(f"e{number}", number, page=page)
    shop.flush()
    to_silver(spark, settings, contract)
    return contract


@retry(retry=retry_if_result(lambda is_open: is_open), stop=stop_after_delay(30), wait=wait_fixed(0.1))
def transaction_is_open(settings, contract):
    """The broker confirms a transaction before its readers see it."""
    log = topic_offsets(settings, contract.topic)
    return any(log.end(partition) > last for partition, (_, last) in log.partitions.items())


def to_silver(spark, settings, contract):
    transaction_is_open(settings, contract)
    ingest(spark, settings, contract, "test")
    return refine(spark, settings, contract, "test")


def corrected(spark, settings, contract):
    return {row: with_fields(row, {"page": "/fixed"}, contract) for row in run.rows(spark, settings, contract)}


def test_rows_come_back_corrected_with_the_place_that_they_stand_for(spark, settings, aside, rows):
    values = corrected(spark, settings, aside)
    result = run.redrive(spark, settings, aside, values, "me")
    assert (len(result.sent), result.before) == (2, ())
    to_silver(spark, settings, aside)
    found = {row["event_id"]: row for row in rows(f"silver.{aside.name}")}
    assert {id: row["page"] for id, row in found.items()} == {"e0": "/", "e1": "/fixed", "e2": "/fixed"}
    sent = [row for row in rows(f"bronze.{aside.name}") if row["headers"]]
    places = {bytes(h["value"]).decode() for row in sent for h in row["headers"] if h["key"] == HEADER}
    assert places == {f"{aside.topic}/{row.partition}/{row.offset}" for row in values}
    assert {row["partition"] for row in sent} == {row.partition for row in values}


def test_a_row_is_not_sent_twice_whether_bronze_has_it_or_the_topic_alone(spark, settings, aside):
    values = corrected(spark, settings, aside)
    first, second = values
    assert run.redrive(spark, settings, aside, {first: values[first]}, "me").sent == (first.place,)
    again = run.redrive(spark, settings, aside, values, "me")
    assert (again.sent, again.before) == ((second.place,), (first.place,)), "the topic has it"
    to_silver(spark, settings, aside)
    again = run.redrive(spark, settings, aside, values, "me")
    assert again.sent == (), "bronze has it"
    assert {*again.before} == {first.place, second.place}


class Dying:
    """A producer whose process dies around its commit."""

    def __init__(self, producer, commits):
        self._producer, self._commits = producer, commits

    def __getattr__(self, name):
        return getattr(self._producer, name)

    def commit_transaction(self, timeout):
        if self._commits:
            self._producer.commit_transaction(timeout)
        else:
            self._producer.flush(timeout)
        raise SystemExit("killed")


@pytest.mark.parametrize("commits", [slow(False), True], ids=["before its commit", "after its commit"])
def test_a_command_that_was_killed_is_repeated_and_each_row_is_there_once(
    spark, settings, aside, rows, monkeypatch, commits
):
    values = corrected(spark, settings, aside)
    with monkeypatch.context() as patched:
        patched.setattr(run, "Producer", lambda config: Dying(Producer(config), commits))
        with pytest.raises(SystemExit):
            run.redrive(spark, settings, aside, values, "me")
    result = run.redrive(spark, settings, aside, values, "me")
    assert len(result.before if commits else result.sent) == 2
    to_silver(spark, settings, aside)
    assert sorted(row["event_id"] for row in rows(f"silver.{aside.name}")) == ["e0", "e1", "e2"]
    assert len([row for row in rows(f"bronze.{aside.name}") if row["headers"]]) == 2


def test_what_would_go_to_quarantine_again_is_refused_and_nothing_is_sent(spark, settings, aside):
    values = {row: row.value for row in run.rows(spark, settings, aside)}
    with pytest.raises(
        RedriveRefused, match=r"2 of 2 rows would go to quarantine again .*match_regex.* --set or --value"
    ):
        run.redrive(spark, settings, aside, values, "me")
    assert run.redriven(spark, settings, aside) == set()
    mended = replace(aside, rules=())
    assert len(run.redrive(spark, settings, mended, values, "me").sent) == 2


def test_changes_of_a_table_are_not_sent_again(spark, settings):
    with pytest.raises(RedriveRefused, match="then replay silver"):
        run.redrive(spark, settings, CONTRACTS["users"], {}, "me")


def test_the_command_line_lists_shows_and_redrives(spark, settings, aside, monkeypatch):
    monkeypatch.setattr(configuration, "load", lambda: settings)

    def lockstep(*arguments):
        return CliRunner().invoke(app, ["quarantine", *arguments], env={"COLUMNS": "300"})

    listed = lockstep("list", aside.name)
    assert listed.exit_code == 0, listed.output
    [line] = [line for line in listed.output.splitlines() if line.startswith(aside.name)]
    assert str(rule_of(PAGES)) in line
    assert " 2 " in line
    shown = lockstep("show", aside.name)
    places = {line.split()[0]: line for line in shown.output.splitlines() if not line.startswith(" ")}
    assert len(places) == 2
    assert '"page": "bad"' in shown.output
    place = next(iter(places))
    sent = lockstep("redrive", aside.name, "--at", place, "--set", 'page="/fixed"', "--yes")
    assert sent.exit_code == 0, sent.output
    assert "1 rows were sent" in sent.output
    again = lockstep("redrive", aside.name, "--at", place, "--set", 'page="/fixed"', "--yes")
    assert "1 were re-driven before, and not sent again." in again.output
    assert f"{place}  " in lockstep("show", aside.name).output
    assert ", re-driven" in lockstep("show", aside.name, "--at", place).output
    assert isinstance(lockstep("redrive", aside.name).exception, RedriveRefused)
    assert json.loads(next(iter(run.rows(spark, settings, aside))).value or b"")
