"""The facts that the demo waits for, and its comparison of bronze with what the broker acknowledged."""

from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.settings import Settings
from lockstep.status.model import Status, Stream
from shop.demo import facts
from shop.simulate import ground_truth
from shop.simulate.producer import Acknowledged

EVENTS = [contract for contract in CONTRACTS.values() if contract.kind == "events"]


def orders(lag: int) -> Status:
    return Status([Stream("orders", "shop.orders", 10, lag={"bronze": 0, "silver": lag})], [])


@pytest.mark.parametrize(("lag", "holds"), [(0, True), (3, False)])
def test_a_layer_has_everything_when_nothing_is_behind(lag: int, holds: bool) -> None:
    assert facts.drained(orders(lag), "silver").holds == holds


def test_no_fact_holds_while_the_broker_does_not_answer() -> None:
    no_answer = Status([], [])
    for fact in (facts.drained(no_answer, "bronze"), facts.drained(no_answer, "gold")):
        assert not fact.holds
        assert fact.seen == "the broker does not answer"


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """The settings of a home in which the broker has acknowledged 2 records of each stream of events."""
    home = Settings(home=tmp_path)
    for contract in EVENTS:
        records = [Acknowledged(contract.topic, 0, n, b"1", b"{}", 1_790_000_000_000, False) for n in range(2)]
        ground_truth.append(home, records)
    return home


def bronze(settings: Settings, **offsets: list[int]) -> None:
    """Have the rows of offsets 0 and 1 in bronze for each stream of events, but for these."""
    for contract in EVENTS:
        rows = offsets.get(contract.name, [0, 1])
        table = pa.table({"partition": pa.array([0] * len(rows), pa.int32()), "offset": pa.array(rows, pa.int64())})
        write_deltalake(lake.path(settings, f"bronze.{contract.name}"), table)


def test_bronze_with_exactly_the_acknowledged_records_has_no_difference(settings: Settings) -> None:
    bronze(settings)
    assert facts.acknowledged(settings) == []


def test_what_an_open_shop_sends_later_is_not_compared(settings: Settings) -> None:
    bronze(settings, clicks=[0, 1, 2, 3])
    assert facts.acknowledged(settings) == []


@pytest.mark.parametrize("offsets", [[1], [0, 1, 1]])
def test_a_stream_with_lost_or_doubled_records_is_named_with_both_counts(
    settings: Settings, offsets: list[int]
) -> None:
    bronze(settings, clicks=offsets)
    assert facts.acknowledged(settings) == [
        f"clicks: the broker acknowledged 2 records, and bronze has {len(offsets)} of them"
    ]
