"""Wait until the merged answer of a view has read a write, which is named by its offsets."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep import lake
from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import live_of, serving_of
from lockstep.errors import LockstepError
from lockstep.live.frontier import checkpoint_location, live_positions
from lockstep.serving.merged import seen, visible

if TYPE_CHECKING:
    from lockstep.definition import View
    from lockstep.settings import Settings

Ends = Mapping[int, int]
_WAIT_SECONDS = 0.2


class NotReadYet(LockstepError):
    """The answer has not read the write."""


def has_read(settings: "Settings", view: "View") -> dict[str, dict[int, int]]:
    """By stream and partition, the offset up to which the answer of ``serving.<view>`` has read.

    That is how far live has read. In a view that reads tables, batch's rows are shown too where batch is ahead; and in any view
    that has no live table.
    """
    found: dict[str, dict[int, int]] = {stream: {} for stream in view.streams}
    has_live = lake.exists(settings, live_of(view))
    if has_live:
        live = live_positions(checkpoint_location(settings, view), view)
        found = {stream: dict(live[CONTRACTS[stream].topic]) for stream in view.streams}
    if view.upserts or not has_live:
        entry = seen(settings, view, visible(settings))
        topics = {CONTRACTS[stream].topic: stream for stream in view.streams}
        for r in entry.ranges if entry else ():
            if r.topic in topics:
                ends = found[topics[r.topic]]
                ends[r.partition] = max(ends.get(r.partition, 0), r.end)
    return found


def wait(settings: "Settings", view: "View", after: Mapping[str, Ends], seconds: float) -> None:
    """Wait until the answer has read what comes before these offsets.

    Args:
        after: by stream and partition, the offset that follows the write.
        seconds: how long to wait; 0: look once.

    Raises:
        NotReadYet: it has not after that time. The message says how far it is.
    """
    attempts = Retrying(stop=stop_after_delay(seconds), wait=wait_fixed(_WAIT_SECONDS), retry=retry_if_result(bool))
    try:
        attempts(lambda: behind(has_read(settings, view), after))
    except RetryError as error:
        missing = "; ".join(error.last_attempt.result())
        raise NotReadYet(f"{serving_of(view)} has not read the write after {seconds:g} s: {missing}.") from None


def behind(read: Mapping[str, Ends], after: Mapping[str, Ends]) -> list[str]:
    """The partitions that have not been read up to their offsets, in words. Pure."""
    return [
        f"{stream}-{partition} is read up to {read.get(stream, {}).get(partition, 0):,} of {end:,}"
        for stream, ends in after.items()
        for partition, end in ends.items()
        if read.get(stream, {}).get(partition, 0) < end
    ]
