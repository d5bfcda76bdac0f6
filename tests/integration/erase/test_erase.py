"""A person is erased in all layers: nothing of her is left, and what is of others is as it was, also after a replay."""

import json
import re
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from tests.support.digest import digest
from tests.support.erased import left, promoted
from tests.support.shop import START
from typer.testing import CliRunner

from lockstep import lake, ledger
from lockstep.cli.main import app
from lockstep.contracts import CONTRACTS
from lockstep.control import erased, intervals
from lockstep.control.database import control
from lockstep.control.records import Record, put
from lockstep.definition.tables import Tables, gold_of
from lockstep.erase import receipt, run
from lockstep.erase.scan import UNDECODED
from lockstep.ingest.bronze import ingest, read
from lockstep.ledger.entries import entry
from lockstep.ledger.history import recorded
from lockstep.ledger.ranges import Range
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
    notes = lake.path(settings, f"ops.notes_{stream.name[-8:]}")
    write_deltalake(notes, pa.table({"note": [f"saw {person}", f"saw {person}2"], "number": [1, 2]}))

    done = erase(person, stream)

    assert left(done.receipt, stream) == []
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
        ((key, noted),) = cursor.fetchall()
    assert re.fullmatch(rf"\[erased {number} [0-9a-f]{{12}}\]", key), "a key stays one of its own"
    assert noted == {"of": [f"[erased {number}]"]}
    assert sorted(DeltaTable(notes).to_pyarrow_table()["note"].to_pylist()) == [
        f"saw [erased {number}]",
        f"saw {person}2",
    ]

    bronze = spark.table(tables.bronze)
    assert bronze.count() == records, "each offset has its row"
    assert bronze.where("headers[0].key = 'lockstep-erased' AND key IS NULL AND value IS NULL").count() == 24
    assert digest(settings, tables.log) == others
    assert [bytes(row["_key"]).decode() for row in rows(tables.quarantine)] == [f"{person}2"]
    after = ledger.latest(settings, tables.log).totals
    assert after["erased"] == 24
    assert sum(after.values()) == sum(counts.values()) == records
    for table in (tables.bronze, tables.log, gold):
        entries = [entry(commit) for commit in recorded(settings, table, "true")]
        assert (len(entries) > 1, list(ledger.problems(reversed(entries)))) == (True, []), "older ones are archived"
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
    assert (again.receipt["erasure"], left(again.receipt, stream)) == (number, []), "nothing is left to be erased"
    assert again.receipt["records"] == done.receipt["records"]
    assert {p: of["before"] for p, of in again.receipt["places"].items()} == {
        p: of["before"] for p, of in places.items()
    }
    assert erase(f"{person}9", stream) is None


@pytest.mark.slow
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
    assert (done.receipt["records"], left(done.receipt, stream)) == ({stream.name: 24}, [])
    totals = ledger.latest(settings, Tables.of(stream).log).totals
    assert totals["erased"] == 24
    assert sum(totals.values()) == spark.table(Tables.of(stream).bronze).count()
    assert sum(ledger.latest(settings, gold_of(view)).totals.values()) == totals["silver"]


def died(erase, monkeypatch, point, *asked):
    """Ask for an erasure that dies at a point."""
    with monkeypatch.context() as patch:
        patch.setattr(run, "failpoint", lambda name: pytest.fail(name) if name == point else None)
        with pytest.raises(pytest.fail.Exception, match=point):
            erase(*asked)


@pytest.mark.slow
def test_an_erasure_that_died_is_finished_by_the_next_one_of_the_person(
    settings, stream, view, shop, batch, erase, person, monkeypatch
):
    shop.view("e1", 1, user_id=person)
    shop.flush()
    batch()
    died(erase, monkeypatch, "bronze-erased", person, stream)
    shop.view("e2", 2, user_id=person)
    shop.flush()
    last = erase(person, stream).receipt
    assert (last["records"], left(last, stream)) == ({stream.name: 1}, [])
    first, second = [one for one in erased.every(settings) if one.subject == last["subject"]]
    assert None not in (first.finished_at, second.finished_at)
    assert first.receipt["completed_by"] == second.number == last["erasure"]
    assert "completed_by" not in last
    assert first.receipt == json.loads(receipt.path(settings, first.number).read_text())
    assert (first.receipt["records"], first.receipt["left"]) == ({stream.name: 1}, last["left"])


def test_a_stream_whose_topic_is_missing_has_nobody(stream, erase, person, monkeypatch):
    never = replace(stream, name=f"never_{person}", topic=f"never_{person}")
    monkeypatch.setitem(CONTRACTS, never.name, never)
    assert erase(person, never) is None


def test_an_erasure_is_refused_while_a_replay_holds_a_table(spark, settings, stream, shop, batch, erase, person):
    shop.view("e1", 1, user_id=person)
    shop.flush()
    batch()
    replay = f"replay-{person}"
    intervals.claim(settings, replay, {Tables.of(stream).log: (START, START + timedelta(hours=1))})
    try:
        with pytest.raises(intervals.IntervalHeld, match=f"replay discard {replay}"):
            erase(person, stream)
    finally:
        intervals.release(settings, replay)
    assert spark.table(Tables.of(stream).bronze).where("key IS NULL").count() == 0


def test_records_that_leaked_are_erased_by_their_offsets(settings, stream, view, shop, batch, rows, person):
    for number in range(4):
        user = {"user_id": f"{person}{number}", "session_id": "s1", "page": "/"}
        value = {"event_id": f"e{number}", "event_time": START.isoformat()} | user
        shop.raw(json.dumps(value).encode(), number, partition=0)
    shop.raw(b'{"event_id": ', 4, partition=0)
    shop.flush()
    batch()
    tables, ranges = Tables.of(stream), [f"--range={stream.topic}:0:{of}" for of in ("1-3", "4-9")]

    def asked(*more):
        result = CliRunner().invoke(app, ["erase", *ranges, *more])
        # Of files that others tear in the shared stack on purpose, the command says so, and ends with 1.
        assert result.exit_code == (f" has {UNDECODED}" in result.output), f"{result.output} {result.exception}"
        assert not re.search(f"LEFT .* has (?!{UNDECODED})", result.output)
        return result.output, sorted(row["user_id"] for row in rows(tables.log))

    said, users = asked("--plan")
    assert f"{stream.name}: 3 records (2 silver, 1 quarantined)" in said
    assert users == [f"{person}{number}" for number in range(4)], "nothing was written"
    said, users = asked("--by=bob", "--reason=a leak")
    assert f"erased   {stream.name}: 3 records" in said
    assert f"kept     {stream.topic}-0: erased records from 1 to 4" in said
    assert users == [f"{person}0", f"{person}3"]
    assert rows(tables.quarantine) == []
    assert [row["offset"] for row in rows(tables.bronze) if row["value"] is None] == [1, 2, 4]
    batch()
    assert sum(row["views"] for row in rows(gold_of(view))) == 2
    assert ledger.latest(settings, tables.log).totals["erased"] == 3


def test_it_begins_though_new_records_come_with_each_run_of_ingest(spark, settings, stream, shop, monkeypatch):
    shop.view("e0", 0)
    shop.flush()
    runs = []

    def and_another_record_comes(*given):
        runs.append(ingest(*given))
        shop.view(f"e{len(runs)}", len(runs))
        shop.flush()
        assert len(runs) < 5
        return runs[-1]

    monkeypatch.setattr(run, "ingest", and_another_record_comes)
    run.catch_up(spark, settings, [stream])
    assert [entry and entry.rows for entry in runs] == [1, None]
