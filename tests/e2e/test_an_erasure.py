"""Somebody asks Airflow to erase a person, and somebody approves it: neither Airflow nor anything else has her afterwards."""

from collections.abc import Iterator

import pytest
from tests.support.airflow import AirflowPages
from tests.support.ports import FLOW, started
from tests.support.shop import Shop

from lockstep import ledger
from lockstep.airflow_api import USER
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.control import erased
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables
from lockstep.erase.asked_in_airflow import HIDDEN
from lockstep.erase.needles import Needles
from lockstep.erase.receipt import directory
from lockstep.erase.scan import Hit, scan
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import ensure_topics
from lockstep.refine import tokens
from lockstep.refine.silver import refine
from lockstep.settings import Settings
from lockstep.stack.stack import Stack

STREAM = CONTRACTS["page_views"]
PERSON = "ann4711user"
# Of a run on two cores that other tests share.
SECONDS = 600
# What Airflow keeps: its database, and the logs of its tasks and servers.
OF_AIRFLOW = ("Airflow's database", "home")


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack with Airflow, and without live queries."""
    with started(tmp_path_factory.mktemp("home"), services=[*FLOW, "airflow"]) as running:
        tokens._settings.cache_clear()
        yield running
    tokens._settings.cache_clear()


@pytest.fixture(scope="module")
def settings(stack: Stack) -> Settings:
    """A platform with the page views of two persons."""
    settings = stack.settings
    ensure_topics(settings, {STREAM.name: STREAM})
    shop = Shop(settings, STREAM)
    for number in range(8):
        shop.view(f"e{number}", number, user_id=(PERSON, f"{PERSON}2")[number % 2])
    shop.flush()
    with connect(settings, "task") as session:
        ingest(session, settings, STREAM, "run")
        refine(session, settings, STREAM, "run")
        roll_up(session, settings, VIEWS["page_views_per_minute"], "run")
    return settings


@pytest.fixture(scope="module")
def pages(settings: Settings) -> AirflowPages:
    return AirflowPages(settings.airflow_url, settings.airflow_password.get_secret_value())


def traces(settings: Settings) -> list[Hit]:
    """Where Airflow has the person."""
    found = scan(settings, Needles({"subject": PERSON}), {}).hits
    return [hit for hit in found if hit.place in OF_AIRFLOW and not hit.is_transient]


def asked(settings: Settings) -> list[str]:
    """What is kept of what runs were asked for."""
    return [file.name for file in (directory(settings) / "asked").glob("*")]


def test_what_is_not_approved_changes_nothing_and_airflow_forgets_who_was_meant(
    settings: Settings, pages: AirflowPages
) -> None:
    run = pages.trigger("erase", subject=PERSON, reason="ticket 4711")
    body = pages.asked("erase", run, "approve", SECONDS)
    assert f"{USER} asks for it" in body
    assert "- page_views: 4 records (4 silver)" in body
    assert traces(settings) == [], "not even while a person thinks about it"
    assert asked(settings)

    pages.answer("erase", run, "approve", "Keep")
    assert pages.ended("erase", run, SECONDS) == "success"
    assert pages.states("erase", run)["erase"] == "skipped"
    assert pages.form("erase", run)["subject"] == HIDDEN
    assert (traces(settings), asked(settings)) == ([], [])
    assert ledger.latest(settings, Tables.of(STREAM).log).totals.get("erased", 0) == 0


def test_what_is_refused_is_on_the_page_of_the_run_and_forgotten_too(settings: Settings, pages: AirflowPages) -> None:
    run = pages.trigger("erase", subject=PERSON, reason=f"{PERSON} wrote to us")
    assert pages.ended("erase", run, SECONDS) == "failed"
    assert pages.results("erase", run, "plan") == {"this erasure": "refused"}
    assert pages.states("erase", run)["forget_form"] == "success"
    assert pages.form("erase", run) == {"subject": HIDDEN, "reason": f"{HIDDEN} wrote to us"}
    assert (traces(settings), asked(settings)) == ([], [])


def test_what_is_approved_is_erased_and_the_receipt_is_on_the_page_of_the_run(
    settings: Settings, pages: AirflowPages
) -> None:
    run = pages.trigger("erase", subject=PERSON, reason="ticket 4711")
    pages.asked("erase", run, "approve", SECONDS)
    pages.answer("erase", run, "approve", "Erase")
    assert pages.ended("erase", run, SECONDS) == "success", pages.states("erase", run)
    (erasure,) = erased.every(settings)
    assert (erasure.by, erasure.approved_by, erasure.reason) == (USER, USER, "ticket 4711")
    receipt = erasure.receipt
    assert receipt
    assert receipt["left"] == []
    assert receipt["records"] == {STREAM.name: 4}
    shown = pages.results("erase", run, "erase")
    assert shown | {"page_views": "done", "lake": "done", "Airflow's database": "done"} == shown
    assert "failed" not in shown.values()
    assert (traces(settings), asked(settings)) == ([], [])
    assert ledger.latest(settings, Tables.of(STREAM).log).totals["erased"] == 4
