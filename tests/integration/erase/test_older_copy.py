"""An older copy of the control database loses no erasure: the layers are asked, on real servers."""

import pytest
from tests.support.erased import left
from tests.support.slow import slow

from lockstep import ledger
from lockstep.control import erased
from lockstep.control.database import control
from lockstep.definition.tables import Tables
from lockstep.erase import restored
from lockstep.ingest.bronze import read
from lockstep.ledger.ranges import Range
from lockstep.stack.postgres import post_start


def restored_before(settings, number):
    """The control database is a copy of before an erasure."""
    with control(settings) as connection, connection.cursor() as cursor:
        for table in ("erased_offsets", "erased_versions"):
            cursor.execute(f"DELETE FROM {table} WHERE erasure >= %s", (number,))
        cursor.execute("DELETE FROM erasures WHERE number >= %s", (number,))
        cursor.execute(f"ALTER TABLE erasures ALTER COLUMN number RESTART WITH {number}")


@pytest.mark.slow
@pytest.mark.parametrize("receipts", [slow("are there"), "are lost"])
def test_no_number_is_used_twice_after_an_older_copy_of_the_control_database(
    settings, stream, view, shop, batch, erase, rows, person, receipts
):
    for number, user in enumerate((person, f"{person}2", f"{person}3")):
        shop.view(f"e{number}", number, user_id=user)
    shop.flush()
    batch()
    first = erase(person, stream)
    restored_before(settings, first.receipt["erasure"])
    if receipts == "are lost":
        first.file.unlink()

    second = erase(f"{person}2", stream).receipt
    assert (second["erasure"], left(second, stream)) == (first.receipt["erasure"] + 1, [])
    tables = Tables.of(stream)
    assert [row["user_id"] for row in rows(tables.log)] == [f"{person}3"]
    assert sum(row["value"] is None for row in rows(tables.bronze)) == 2
    numbers = {*restored.numbers_in(settings, tables.bronze)}
    assert numbers == {first.receipt["erasure"], second["erasure"]}, "the first is in the archive alone"


@pytest.mark.slow
def test_what_was_erased_after_the_copy_is_taken_from_kafka_by_nobody_and_asked_for_again_it_is_known(
    spark, settings, stream, view, shop, batch, erase, person
):
    for number in range(6):
        shop.view(f"e{number}", number, user_id=(person, f"{person}2", f"{person}3")[number % 3])
    shop.flush()
    batch()
    done = [erase(user, stream).receipt for user in (person, f"{person}2")]
    gone = erased.of_topic(settings, stream.topic)
    restored_before(settings, done[0]["erasure"])
    assert erased.of_topic(settings, stream.topic) == {}

    post_start(settings)

    assert erased.of_topic(settings, stream.topic) == gone
    newest = ledger.latest(settings, Tables.of(stream).bronze).ranges
    everything = [Range(r.topic, r.topic_id, r.partition, 0, r.end) for r in newest]
    keys = [row["key"] for row in read(spark, settings, everything).to_pylist()]
    assert {*keys} == {None, f"{person}3".encode()}
    assert [one.receipt for one in erased.every(settings)[-2:]] == done
    again = erase(person, stream).receipt
    assert (again["erasure"], again["records"]) == (done[0]["erasure"], done[0]["records"])
