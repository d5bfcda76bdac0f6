"""How far each layer has seen the log, and which of a view's rows are final there.

A row is final when every partition's log has passed its window's end, or its instant, plus the lateness.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.view import BEGINNING
from lockstep.ledger.event_time import reached
from lockstep.live import generations
from lockstep.live.checkpoint import Checkpoint

if TYPE_CHECKING:
    from collections.abc import Callable

    from lockstep.lake import Commit
    from lockstep.settings import Settings


def batch_final(settings: "Settings", view: View) -> datetime | None:
    """The instant (UTC) before which gold is final, or None while nothing is."""
    done = ledger.latest(settings, gold_of(view))
    return final_at(settings, view, done) if done else None


def final_at(settings: "Settings", view: View, done: ledger.Entry) -> datetime | None:
    """The instant (UTC) before which gold was final at an entry of its ledger, or None if nothing was."""
    if view.keeps_until:
        return datetime.fromisoformat(done.until) if done.until else None
    return _passed(settings, view, lambda topic: {r.partition: r.end for r in done.ranges if r.topic == topic})


def live_final(settings: "Settings", view: View) -> datetime | None:
    """The instant (UTC) before which the live table is final, or None while nothing is."""
    place = live_place(settings, view)
    if view.keeps_until:
        watermark = live_watermark(place)
        return watermark - view.limit if watermark else None
    return _passed(settings, view, lambda topic: live_position(place, topic))


@dataclass(frozen=True)
class LiveSnapshot:
    """The live table at one of its versions, and what of the log its rows come from.

    Args:
        at: when that version was committed (UTC).
        position: per topic and partition, the next offset that it has not seen.
        until: events before this instant (UTC) have been given to the machines.
        changed_at: when the micro-batch of ``position`` was committed (UTC); later rows know more than it.
    """

    version: int
    at: datetime
    position: Mapping[str, Mapping[int, int]]
    until: datetime
    changed_at: datetime


def live_within(settings: "Settings", view: View, done: ledger.Entry) -> LiveSnapshot | None:
    """The newest version of the live table that knows of nothing beyond an entry of gold; None while there is none.

    Micro-batches say in their commits where they ended. What others did to the table since then is taken for a part of it.
    """
    newest: Commit | None = None
    for commit in lake.commits(settings, f"live.{view.name}"):
        newest = newest or commit
        writer = commit.record.get("writer")
        if writer == "generation" or (writer == "live" and "position" not in commit.record):
            return None
        if writer != "live":
            continue
        position = {t: {int(p): end for p, end in ends.items()} for t, ends in commit.record["position"].items()}
        if _holds(done, position):
            moment = datetime.fromtimestamp(commit.record["watermark"] / 1000, UTC) - view.limit
            return LiveSnapshot(newest.version, _at(newest), position, max(moment, BEGINNING), _at(commit))
        newest = None
    return None


def _holds(done: ledger.Entry, position: Mapping[str, Mapping[int, int]]) -> bool:
    ends = {(r.topic, r.partition): r.end for r in done.ranges}
    return all(end <= ends.get((topic, p), 0) for topic, found in position.items() for p, end in found.items())


def _at(commit: "Commit") -> datetime:
    return datetime.fromtimestamp(commit.timestamp / 1000, UTC)


def _passed(settings: "Settings", view: View, position: "Callable[[str], dict[int, int]]") -> datetime | None:
    times = []
    for stream in view.streams:
        contract = CONTRACTS[stream]
        times.append(reached(ledger.entries(settings, Tables.of(contract).bronze), position(contract.topic)))
    known = [time for time in times if time is not None]
    return min(known) - view.limit if len(known) == len(times) else None


def live_place(settings: "Settings", view: View) -> str:
    """Where the checkpoint of the view's live query is."""
    return generations.get(settings, view.name).location(settings)


def live_position(checkpoint: str, topic: str) -> dict[int, int]:
    """The position of a live query after its last *committed* micro-batch; empty before that."""
    return Checkpoint(checkpoint).position().get(topic, {})


def live_watermark(checkpoint: str) -> datetime | None:
    """The watermark (UTC) at which a query's last committed micro-batch ran; None before one has been reached."""
    place = Checkpoint(checkpoint)
    last = place.last()
    milliseconds = place.batch(last).watermark if last is not None else 0
    return datetime.fromtimestamp(milliseconds / 1000, UTC) if milliseconds else None
