"""An older copy of the control database loses no erasure: the layers are asked, on real servers."""

import pytest
from tests.support.erased import left

from lockstep.control.database import control
from lockstep.definition.tables import Tables
from lockstep.erase import restored


def restored_before(settings, number):
    """The control database is a copy of before an erasure."""
    with control(settings) as connection, connection.cursor() as cursor:
        for table in ("erased_offsets", "erased_versions"):
            cursor.execute(f"DELETE FROM {table} WHERE erasure >= %s", (number,))
        cursor.execute("DELETE FROM erasures WHERE number >= %s", (number,))
        cursor.execute(f"ALTER TABLE erasures ALTER COLUMN number RESTART WITH {number}")


@pytest.mark.parametrize("receipts", ["are there", "are lost"])
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
