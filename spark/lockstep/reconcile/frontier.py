"""How far each layer has seen the log, and which of a view's rows are final there.

A row is final when every partition's log has passed its window's end, or its instant, plus the lateness.
"""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep.batch.rollup import gold_of
from lockstep.checkpoints import generations
from lockstep.checkpoints.files import Checkpoint
from lockstep.contracts import CONTRACTS
from lockstep.definition import Keyed, View
from lockstep.ingest import ledger
from lockstep.ingest.frontier import reached
from lockstep.refine.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Callable

    from lockstep.settings import Settings


def batch_final(settings: "Settings", view: View) -> datetime | None:
    """The instant (UTC) before which gold is final, or None while nothing is."""
    done = ledger.latest(settings, gold_of(view))
    if done is None:
        return None
    if isinstance(view, Keyed):
        return datetime.fromisoformat(done.until) if done.until else None
    return _passed(settings, view, lambda topic: {r.partition: r.end for r in done.ranges if r.topic == topic})


def live_final(settings: "Settings", view: View) -> datetime | None:
    """The instant (UTC) before which the live table is final, or None while nothing is."""
    place = generations.get(settings, view.name).location(settings)
    if isinstance(view, Keyed):
        watermark = live_watermark(place)
        return watermark - view.limit if watermark else None
    return _passed(settings, view, lambda topic: live_position(place, topic))


def same_position(settings: "Settings", view: View) -> bool:
    """Whether both layers have seen exactly the same of each of the view's topics, and anything at all."""
    done = ledger.latest(settings, gold_of(view))
    place = generations.get(settings, view.name).location(settings)
    for topic in (CONTRACTS[stream].topic for stream in view.streams):
        batch = {r.partition: r.end for r in (done.ranges if done else ()) if r.topic == topic}
        if not batch or batch != live_position(place, topic):
            return False
    return True


def _passed(settings: "Settings", view: View, position: "Callable[[str], dict[int, int]]") -> datetime | None:
    times = []
    for stream in view.streams:
        contract = CONTRACTS[stream]
        times.append(reached(ledger.entries(settings, Tables.of(contract).bronze), position(contract.topic)))
    known = [time for time in times if time is not None]
    return min(known) - view.limit if len(known) == len(times) else None


def live_position(checkpoint: str, topic: str) -> dict[int, int]:
    """The position of a live query after its last *committed* micro-batch; empty before that."""
    return Checkpoint(checkpoint).position().get(topic, {})


def live_watermark(checkpoint: str) -> datetime | None:
    """The watermark (UTC) at which a query's last committed micro-batch ran; None before one has been reached."""
    place = Checkpoint(checkpoint)
    last = place.last()
    milliseconds = place.batch(last).watermark if last is not None else 0
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
