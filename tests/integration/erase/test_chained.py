"""A person is erased from the stream of a view's results too, and from the views that read it."""

import sys
from datetime import timedelta

import pytest
from pyspark import cloudpickle
from tests.support.committed import until_no_transaction_is_open
from tests.support.erased import left
from tests.support.results import results_of

from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.definition import Input, Keyed
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of
from lockstep.erase import run
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import ensure_topics
from lockstep.refine.silver import refine
from lockstep.serving.publish_results import publish_all

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def numbered(state, event):
    """Number the events of a user."""
    number = (state or 0) + 1
    return number, [{"user_id": event.data["user_id"], "number": number}]


def newest(state, event):
    """The newest number of a user."""
    number = None if event.data["_deleted"] else event.data["number"]
    highest = max(state or 0, number or 0)
    return highest, [{"user_id": event.data["user_id"], "highest": highest}]


@pytest.fixture
def view(stream, monkeypatch):
    """The view whose results are about persons."""
    first = Keyed(
        name=f"numbered_{stream.name[-8:]}",
        columns={"user_id": "STRING", "number": "BIGINT"},
        key=("user_id", "number"),
        allowed_lateness=timedelta(seconds=2),
        inputs=(Input(stream.name, "user_id", ("user_id",)),),
        process=numbered,
    )
    monkeypatch.setitem(VIEWS, first.name, first)
    return first


@pytest.fixture
def results(settings, view, monkeypatch):
    name = f"numbers_{view.name[-8:]}"
    contract = results_of(view, name, event_time="at", subject="user_id")
    monkeypatch.setitem(CONTRACTS, name, contract)
    ensure_topics(settings, {name: contract})
    return contract


@pytest.fixture
def second(results, monkeypatch):
    view = Keyed(
        name=f"newest_{results.name[-8:]}",
        columns={"user_id": "STRING", "highest": "BIGINT"},
        key=("user_id",),
        allowed_lateness=timedelta(seconds=2),
        inputs=(Input(results.name, "user_id", ("user_id", "number"), time="at"),),
        process=newest,
    )
    monkeypatch.setitem(VIEWS, view.name, view)
    return view


@pytest.fixture
def follow(settings, results, second):
    """Publishes the results, and brings the second view up to them; how many changes there were."""

    def follow():
        sent = publish_all(settings, [results]).get(results.name, 0)
        until_no_transaction_is_open(settings, results.topic)
        with connect(settings, "task") as session:
            ingest(session, settings, results, "run")
            refine(session, settings, results, "run")
            roll_up(session, settings, second, "run")
        return sent

    return follow


def test_a_person_is_gone_from_the_results_and_nothing_is_published_of_the_person_again(
    settings, stream, shop, results, second, batch, follow, erase, rows, person
):
    other = f"{person}2"
    for number in range(6):
        shop.view(f"e{number}", number * 7, user_id=(person, other)[number % 2])
    shop.heartbeat(300)
    shop.flush()
    batch()
    assert follow() == 6
    assert {row["user_id"]: row["highest"] for row in rows(gold_of(second))} == {person: 3, other: 3}

    done = erase(person, stream, results)
    assert done.receipt["records"] == {stream.name: 3, results.name: 3}
    assert (left(done.receipt, stream), left(done.receipt, results)) == ([], [])
    for table in (Tables.of(results).log, Tables.of(results).current, gold_of(second)):
        assert {row["user_id"] for row in rows(table)} == {other}

    batch()
    assert follow() == 0, "gold and the stream's silver have lost the same rows"
    assert {row["user_id"]: row["highest"] for row in rows(gold_of(second))} == {other: 3}


@pytest.mark.slow
def test_results_that_are_published_while_an_erasure_begins_are_erased_too(
    settings, shop, stream, results, second, batch, follow, erase, rows, person, monkeypatch
):
    shop.view("e0", 0, user_id=person)
    shop.heartbeat(100)
    shop.flush()
    batch()
    assert follow() == 1
    shop.view("e1", 110, user_id=person)
    shop.heartbeat(300)
    shop.flush()
    batch()
    catch_up, published = run.catch_up, []

    def and_then_somebody_publishes(*given):
        catch_up(*given)
        if not published:
            published.append(publish_all(settings, [results])[results.name])

    monkeypatch.setattr(run, "catch_up", and_then_somebody_publishes)
    done = erase(person, stream, results)
    assert published == [1]
    assert done.receipt["records"] == {stream.name: 2, results.name: 2}
    assert left(done.receipt, results) == []
    assert follow() == 0
    assert rows(Tables.of(results).log) == rows(gold_of(second)) == []
