"""A copy of a person's data is found in each kind of place where the platform keeps data."""

import os

import psutil
import pytest
from tests.support.erased import traces
from tests.support.planted import planted

from lockstep.erase.needles import Needles
from lockstep.erase.scan import Stalled, _records, rows_of, scan, settled


def test_a_planted_copy_is_found_in_each_kind_of_place(spark, settings, stream, view, shop, batch, person):
    shop.view("e1", 1, user_id="somebody else")
    shop.flush()
    batch()
    needles = Needles({"subject": person})
    assert traces(settled(settings, needles, scan(settings, needles, {})).hits, stream) == [], "nobody has her yet"
    of_columns = rows_of(settings, "somebody else", {"user_id"})
    assert {hit.where for hit in traces(of_columns, stream)} == {f"silver.{stream.name}"}, "also of a common word"
    with planted(settings, shop, view, person) as places:
        found = settled(settings, needles, scan(settings, needles, {}))
        assert {hit.where for hit in traces(found.hits, stream)} == places
        ends = {p: max(o for of, o in shop.acknowledged if of == p) for p in (0, 1)}
        erased = {stream.topic: {p: (end,) for p, end in ends.items()}}
        kept = scan(settings, needles, erased)
        assert kept.kept == {f"{stream.topic}-{p}": (end, end) for p, end in ends.items()}
        assert not [hit for hit in kept.hits if hit.place == "Kafka"], "what was erased may stay until retention"


def test_a_broker_that_gives_nothing_more_ends_the_search_and_is_named_with_where_it_stood(
    stack, settings, stream, shop, person, monkeypatch
):
    # More than a consumer fetches in advance.
    for number in range(20):
        shop.raw(os.urandom(900_000), number, partition=0)
    shop.flush()
    monkeypatch.setattr("lockstep.erase.scan._STALLED_SECONDS", 2)
    records = _records(settings, Needles({"subject": person}))
    assert next(record for record in records if record.topic == stream.topic).offset == 0
    broker = psutil.Process(stack.pid("kafka"))
    broker.suspend()
    try:
        with pytest.raises(Stalled, match=rf"{stream.topic}-0 at \d+ of 20\b"):
            list(records)
    finally:
        broker.resume()
