"""The events of an aggregate, as its log has them."""

from collections.abc import Generator
from contextlib import closing
from typing import TYPE_CHECKING, Any

from lockstep.commands.aggregate import Aggregate
from lockstep.commands.records import Recorded, read_event
from lockstep.commands.topics import committed
from lockstep.contracts.contract import HEARTBEAT

if TYPE_CHECKING:
    from lockstep.settings import Settings


def events(
    settings: "Settings", aggregate: Aggregate[Any, Any, Any], number: int, start: int = 0
) -> Generator[tuple[int, Recorded[Any]]]:
    """The events of a partition, each with its offset, from an offset up to the end that the log has at the call.

    Heartbeats are left out: where the topic is a stream of the lake too, the platform sends them.

    Raises:
        LogUnreadable: the log cannot be read to its end, or has a record that is no event of the aggregate.
    """
    with closing(committed(settings, aggregate.topic("events"), number, start)) as records:
        for record in records:
            if HEARTBEAT not in record.headers:
                yield record.offset, read_event(aggregate, record)
