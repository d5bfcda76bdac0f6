"""Which version of the live table has read no more of the log than gold."""

from datetime import UTC, datetime
from typing import Any

from tests.support.commits import entry, ranges, write_commit

from lockstep.definition.registry import VIEWS
from lockstep.ledger.entries import Entry
from lockstep.live.frontier import live_within
from lockstep.settings import Settings

VIEW = VIEWS["orders_with_customer"]


def gold(users: int, orders: int) -> Entry:
    return entry([*ranges({0: (0, users)}, "users"), *ranges({0: (0, orders)}, "orders")], "gold.x")


def live(users: int, orders: int, watermark: int = 0) -> dict[str, Any]:
    return {"writer": "live", "position": {"users": {"0": users}, "orders": {"0": orders}}, "watermark": watermark}


def log(settings: Settings, *records: dict[str, Any]) -> None:
    """A Delta log of the live table with a commit for each record, one second after the other."""
    for version, record in enumerate(records):
        write_commit(settings, f"live.{VIEW.name}", version, record, timestamp=version * 1000, operation="MERGE")


def test_the_newest_version_that_gold_covers_is_taken(settings):
    log(settings, live(1, 1), live(1, 2), live(2, 2), live(2, 3))
    snapshot = live_within(settings, VIEW, gold(2, 2))
    assert (snapshot.version, snapshot.position) == (2, {"users": {0: 2}, "orders": {0: 2}})
    assert snapshot.at == snapshot.changed_at == datetime.fromtimestamp(2, UTC)


def test_one_topic_that_is_ahead_is_enough_to_leave_a_version_out(settings):
    log(settings, live(1, 1), live(1, 3))
    assert live_within(settings, VIEW, gold(5, 2)).version == 0


def test_what_other_writers_did_to_the_table_since_then_is_part_of_the_snapshot(settings):
    log(settings, live(1, 1), {}, live(9, 9), {})
    snapshot = live_within(settings, VIEW, gold(1, 1))
    assert (snapshot.version, snapshot.at, snapshot.changed_at) == (
        1,
        datetime.fromtimestamp(1, UTC),
        datetime.fromtimestamp(0, UTC),
    )


def test_there_is_none_while_live_is_ahead_in_all_of_its_versions(settings):
    log(settings, {}, live(3, 3))
    assert live_within(settings, VIEW, gold(2, 2)) is None


def test_rows_of_an_earlier_generation_are_not_compared(settings):
    log(settings, live(1, 1), {"writer": "generation", "generation": 2})
    assert live_within(settings, VIEW, gold(2, 2)) is None


def test_a_commit_without_its_position_is_not_compared(settings):
    log(settings, live(1, 1), {"writer": "live", "batch_id": 7})
    assert live_within(settings, VIEW, gold(2, 2)) is None
