"""A person is erased in all layers: nothing of her is left, and what is of others is as it was, also after a replay."""

import json
from datetime import timedelta

import pytest
from tests.support.digest import digest
from tests.support.shop import START

from lockstep import ledger
from lockstep.control import erased
from lockstep.control.database import control
from lockstep.control.records import Record, put
from lockstep.definition.tables import Tables, gold_of
from lockstep.erase import run
from lockstep.ingest.bronze import read
from lockstep.ledger.ranges import Range
from lockstep.replay import run as replay
from lockstep.replay.parse import parse
from lockstep.serving.as_of import AsOfRefused, Moment, query


def traffic(shop, person):
    """Some minutes of two persons; of each, one record comes twice, one is late, and one is broken."""
    other = f"{person}2"
    for number in range(40):
        shop.view(f"e{number}", number * 7, user_id=(person, other)[number % 2], country="France")
    for number, of in ((50, person), (51, other)):
        shop.view(f"e{number}", 3, 1, user_id=of)
        shop.view(f"e{number}", 3, 2, user_id=of)
        shop.view(f"late{number}", 4, 250, user_id=of)
        shop.raw(b'{"event_id": "x", "user_id": "%s", ' % of.encode(), 5, key=of)
    shop.heartbeat(300)
    shop.flush()


def promoted(spark, settings, stream):
    """A full replay of silver and gold, promoted."""
    start, end = ((START + timedelta(hours=hours)).isoformat() for hours in (-1, 2))
    wanted = parse(
        {"reason": "all again", "from": start, "to": end, "topics": [stream.name], "layers": ["silver", "gold"]}
    )
    name = replay.open_replay(spark, settings, wanted, "bob", "run", replay.identify(wanted)).id
    replay.compute(spark, settings, name, "run")
    replay.compare(spark, settings, name, "run")
    replay.approve(spark, settings, name, "run", "bob")
    return replay.promote(spark, settings, name, "run")


def test_a_person_is_gone_from_all_places_and_others_are_as_they_were(
    spark, settings, stream, view, shop, batch, erase, rows, person
):
    traffic(shop, person)
    batch()
    tables, gold = Tables.of(stream), gold_of(view)
    others = digest(settings, tables.log, lambda row: row["user_id"] != person)
    counts = ledger.latest(settings, tables.log).totals
    records = spark.table(tables.bronze).count()
    log = settings.home / "airflow" / "logs" / "task.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text(f"row of {person}, and of {person}2")
    put(settings, "ops.test", [Record(person, 1, {"of": [person]}, START)])

    done = erase(person, stream)

    assert done.receipt["left"] == []
    places = done.receipt["places"]
    assert all(places[place]["before"] for place in ("lake", "home", "control database")), places
    assert done.receipt["records"] == {stream.name: 24}
    assert person not in done.file.read_text()
    assert done.file.stat().st_mode & 0o777 == 0o600
    assert log.read_text() == f"row of {'*' * len(person)}, and of {person}2"
    ((number, first),) = [(e.number, e.receipt) for e in erased.every(settings) if e.number == done.receipt["erasure"]]
    assert first == json.loads(done.file.read_text())
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT key, record FROM ops_records WHERE table_name = 'ops.test'")
        assert cursor.fetchall() == [(f"[erased {number}]", {"of": [f"[erased {number}]"]})]

    bronze = spark.table(tables.bronze)
    assert bronze.count() == records, "each offset has its row"
    assert bronze.where("headers[0].key = 'lockstep-erased' AND key IS NULL AND value IS NULL").count() == 24
    assert digest(settings, tables.log) == others
    assert [bytes(row["_key"]).decode() for row in rows(tables.quarantine)] == [f"{person}2"]
    after = ledger.latest(settings, tables.log).totals
    assert after["erased"] == 24
    assert sum(after.values()) == sum(counts.values()) == records
    sums = ledger.latest(settings, gold).totals
    assert sum(sums.values()) == after["silver"]
    assert sum(row["views"] for row in rows(gold)) == spark.table(tables.log).where(view.on_time).count()

    spans = [Range(r.topic, r.topic_id, r.partition, 0, r.end) for r in ledger.latest(settings, tables.bronze).ranges]
    keys = [row["key"] for row in read(spark, settings, spans).to_pylist()]
    assert person.encode() not in keys, "Kafka still has her records, and nobody takes them again"
    assert keys.count(f"{person}2".encode()) == 24
    with pytest.raises(AsOfRefused, match="something in it was erased"):
        query(settings, tables.log, Moment(version=0))

    of_gold = digest(settings, gold)
    promoted(spark, settings, stream)
    assert digest(settings, tables.log) == others
    assert digest(settings, gold) == of_gold
    assert ledger.latest(settings, tables.log).totals == after
    again = erase(person, stream)
    assert (again.receipt["erasure"], again.receipt["left"]) == (number, []), "nothing is left to be erased"
    assert erase(f"{person}9", stream) is None


def test_a_new_record_of_an_erased_person_is_erased_when_it_is_asked_for_again(
    spark, settings, stream, view, shop, batch, erase, person
):
    shop.view("e1", 1, user_id=person)
    shop.flush()
    batch()
    assert erase(person, stream).receipt["records"] == {stream.name: 1}
    shop.view("e2", 2, user_id=person)
    shop.flush()
    assert erase(person, stream).receipt["records"] == {stream.name: 1}
    assert ledger.latest(settings, Tables.of(stream).log).totals["erased"] == 1
    batch()
    assert ledger.latest(settings, Tables.of(stream).log).totals["erased"] == 2


def test_an_erasure_that_dies_goes_on_and_counts_nothing_twice(
    spark, settings, stream, view, shop, batch, erase, person, monkeypatch
):
    traffic(shop, person)
    batch()
    for point in ("erasure-begun", "bronze-erased", "silver-erased", "gold-erased", "versions-purged"):
        with monkeypatch.context() as patch:
            patch.setattr(run, "failpoint", lambda name, at=point: pytest.fail(name) if name == at else None)
            with pytest.raises(pytest.fail.Exception, match=point):
                erase(person, stream)
    done = erase(person, stream)
    assert (done.receipt["records"], done.receipt["left"]) == ({stream.name: 24}, [])
    totals = ledger.latest(settings, Tables.of(stream).log).totals
    assert totals["erased"] == 24
    assert sum(totals.values()) == spark.table(Tables.of(stream).bronze).count()
    assert sum(ledger.latest(settings, gold_of(view)).totals.values()) == totals["silver"]
