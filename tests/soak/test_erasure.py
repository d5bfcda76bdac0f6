"""Twenty persons are erased one after the other, while records of them and of others go on to come in, in all layers."""

import json
import os
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from tests.support.digest import digest
from tests.support.erased import promoted
from tests.support.keys import keys_of, platform_key, token
from tests.support.live import run_live
from tests.support.marts import Orders, order, orders_of
from tests.support.planted import planted
from tests.support.records import change_record
from tests.support.servers import like
from tests.support.shop import START, Shop

from lockstep import ledger
from lockstep.batch.rollup import roll_up
from lockstep.contracts import Contract
from lockstep.control import erased
from lockstep.definition.tables import Tables, gold_of
from lockstep.erase import run, scope
from lockstep.erase.needles import Needles
from lockstep.erase.receipt import is_empty
from lockstep.erase.scan import scan, settled
from lockstep.ingest.bronze import ingest
from lockstep.reconcile.run import reconcile
from lockstep.refine import tokens
from lockstep.refine.silver import refine
from lockstep.serving.publish_changelog import publish_all
from lockstep.settings import Settings

SUBJECTS = int(os.environ.get("LOCKSTEP_SOAK_SUBJECTS", "20"))
OTHERS = ("others0001", "others0002")
NAME = "Ann Miller"


class Traffic:
    """What persons do in a shop: page views, an account that changes, and orders; and what the layers make of it."""

    def __init__(self, settings: Settings, views: Shop, users: Contract, orders: Orders) -> None:
        self.settings, self.views, self.users, self.orders = settings, views, users, orders
        self._accounts = Shop(settings, users)
        self._numbers, self._lsns = count(1), count(1)

    def of(self, person: str) -> None:
        """Some records of a person in each stream: one twice, one late, one broken, a change, a deletion and its tombstone."""
        for _ in range(4):
            number = next(self._numbers)
            self.views.view(f"e{number}", number, user_id=person)
        self.views.view(f"e{number}", number, 2, user_id=person)
        self.views.view(f"late{number}", number, 250, user_id=person)
        self.views.raw(b'{"event_id": "x", "user_id": "%s", ' % person.encode(), number, key=person)
        self._account(None, self._row(person, 30))
        self._account(self._row(person, 30), self._row(person, 31))
        self._account(self._row(person, 31), None)
        self._account(None, self._row(person, 32))
        for day in (1, 2 + number % 5):
            self.orders.change(None, order(next(self._numbers), day, kind=person) | {"user_id": person})

    def _row(self, person: str, age: int) -> dict[str, Any]:
        at = {"created_at": START.isoformat(), "updated_at": START.isoformat()}
        return at | {"user_id": person, "name": NAME, "email": mail(person), "age": age}

    def _account(self, before: dict[str, Any] | None, after: dict[str, Any] | None) -> None:
        lsn = next(self._lsns)
        value = change_record(self.users.name, lsn, lsn, before, after).value
        key = json.dumps({"user_id": (after or before or {})["user_id"]})
        self._accounts.raw(json.dumps(value).encode(), lsn, key, partition=0)
        if after is None:
            self._accounts.raw(None, lsn, key, partition=0)

    def flush(self) -> None:
        """Everything is in Kafka."""
        for shop in (self.views, self._accounts, self.orders.shop):
            shop.flush()

    def bring_up(self, spark: Any, view: Any) -> None:
        """All layers have everything."""
        self.flush()
        for contract in (self.views.contract, self.users):
            ingest(spark, self.settings, contract, "run")
            refine(spark, self.settings, contract, "run")
        roll_up(spark, self.settings, view, "run")
        publish_all(self.settings, [self.users])
        self.orders.bring_up()
        run_live(self.settings, view)


def mail(person: str) -> str:
    return f"{person}@example.org"


def digests(settings: Settings, traffic: Traffic, but: str = "") -> dict[str, str]:
    """By table, the digest of all rows but those of one person."""
    of = [traffic.views.contract, traffic.users, traffic.orders.contract]
    tables = [table for contract in of for table in (Tables.of(contract).log, Tables.of(contract).current) if table]
    return {table: digest(settings, table, lambda row: row["user_id"] != but) for table in tables}


def names(settings: Settings, person: str) -> set[str]:
    """What names a person whom silver has: her id, her address, and the tokens of both and of her name."""
    (key,) = keys_of(settings, person)
    return {person, mail(person), token(platform_key(settings), person)} | {
        token(key, value) for value in (mail(person), NAME)
    }


@pytest.fixture
def traffic(spark: Any, settings: Settings, shop: Shop, tmp_path: Path) -> Iterator[Traffic]:
    # A process knows one platform: that of the servers that it was started with.
    tokens._settings.cache_clear()
    with like(settings, "users") as users, orders_of(spark, settings, tmp_path / "project") as orders:
        yield Traffic(settings, shop, users, orders)
    tokens._settings.cache_clear()


@pytest.mark.timeout(7200)
def test_twenty_persons_are_gone_before_and_after_a_full_replay(spark, settings, stream, view, traffic, report):
    streams = [stream, traffic.users, traffic.orders.contract]
    persons = [f"person{number:04}ann" for number in range(SUBJECTS)]
    for other in OTHERS:
        traffic.of(other)
    named = set[str]()
    for number, (person, following) in enumerate(zip(persons, [*persons[1:], OTHERS[0]], strict=True)):
        traffic.of(person)
        traffic.bring_up(spark, view)
        # Records of this person, and of the next one, come in while nobody works on them.
        traffic.of(person)
        traffic.of(following)
        traffic.flush()
        before = digests(settings, traffic, but=person)
        named |= names(settings, person)
        began = time.monotonic()
        done = run.erase(spark, traffic.orders.settings, scope.of_person(streams, person), "bob", "soak")
        report(
            f"| erasure {number} | | | {time.monotonic() - began:.0f} | {done.receipt['records']} | {done.receipt['left']} |"
        )
        assert is_empty(done.receipt), done.receipt["left"]
        assert keys_of(settings, person) == []
        assert sum(done.receipt["records"].values()) >= 2 * 13, "of all streams, also what was not in bronze yet"
        assert digests(settings, traffic) == before, "rows of others are what they were"

    def found() -> list[Any]:
        needles, topics = Needles({text: text for text in named}), [contract.topic for contract in streams]
        hits = settled(settings, needles, scan(settings, needles, erased.of_topics(settings, topics))).hits
        # Working files of Spark go when its JVM collects what refers to them: receipts name these apart.
        return [hit for hit in hits if not hit.is_transient]

    assert found() == []
    traffic.views.heartbeat(3600)
    traffic.bring_up(spark, view)
    assert found() == [], "nothing comes back from Kafka"
    before, of_gold = digests(settings, traffic), digest(settings, gold_of(view))
    promoted(spark, settings, stream)
    assert (digests(settings, traffic), digest(settings, gold_of(view))) == (before, of_gold)
    assert found() == [], "nor by a full replay"
    assert str(reconcile(spark, settings, view, "run").verdict) == "equal"
    for contract in streams:
        totals = ledger.latest(settings, Tables.of(contract).log).totals
        assert sum(totals.values()) == spark.table(Tables.of(contract).bronze).count()
        assert totals["erased"] > 0

    with planted(settings, traffic.views, view, "planted0001") as places:
        needles = Needles({"subject": "planted0001"})
        assert {hit.where for hit in settled(settings, needles, scan(settings, needles, {})).hits} == places
    report(f"{SUBJECTS} persons erased: nothing of them anywhere, before and after a full replay")
