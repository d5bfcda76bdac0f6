"""A machine processes each change of a table once, and does not remember for ever which ones it has processed."""

from datetime import UTC, datetime, timedelta

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.machine import SEEN_FOR, Machine

START = datetime(2026, 1, 1, tzinfo=UTC)
VIEW = Keyed(
    name="stocked",
    description="What was processed.",
    inputs=(Input("inventory", "product_id", ("product_id",), time="_committed_at"),),
    process=lambda state, change: (state, [{"product_id": change.id}]),
    columns={"product_id": "STRING"},
    key=("product_id",),
    allowed_lateness=timedelta(0),
)


def change(row: str, minute: int) -> Event:
    """A change of a row that was committed in a minute; positions grow with the minutes."""
    return Event(START + timedelta(minutes=minute), row, "inventory", {"_deleted": False}, f"{minute:020}")


def processed(machine: Machine, *changes: Event) -> list[str]:
    rows, _ = machine.run(VIEW, [*changes], None)
    return [row["product_id"] for row in rows]


def test_a_change_that_comes_again_is_not_processed_again_nor_is_an_older_one_of_its_row():
    machine = Machine()
    assert processed(machine, change("a", 1), change("b", 2), change("a", 3)) == ["a", "b", "a"]
    machine = Machine.load(machine.dump())
    assert processed(machine, change("a", 3), change("a", 1), change("b", 2), change("c", 2)) == ["c"]


def test_it_is_remembered_for_the_time_before_too():
    machine = Machine()
    processed(machine, change("a", 0), change("b", 20))
    later = SEEN_FOR // timedelta(minutes=1) + 1
    assert processed(machine, change("c", later), change("b", 20), change("a", 0)) == ["c"]


def test_what_is_remembered_of_rows_that_come_and_go_does_not_grow():
    machine, sizes = Machine(), []
    for minute in range(800):
        processed(machine, change(f"row {minute:03}", minute))
        sizes.append(len(machine.dump()))
    assert max(sizes[600:]) <= 1.02 * max(sizes[:200])
