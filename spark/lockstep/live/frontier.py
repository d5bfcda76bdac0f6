"""How far each layer has read the log, and before which instant its rows of a view are final.

A row is final when the watermark of every partition has passed the end of its window, or its instant, plus the lateness.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.tables import Tables, gold_of, live_of
from lockstep.definition.view import BEGINNING
from lockstep.ledger.event_time import newest_at, watermark
from lockstep.live import generations
from lockstep.live.checkpoint import Checkpoint

if TYPE_CHECKING:
    from lockstep.lake import Commit
    from lockstep.settings import Settings


def batch_final(settings: "Settings", view: View) -> datetime | None:
    """The instant (UTC) before which gold is final, or None while nothing is."""
    entry = ledger.latest(settings, gold_of(view))
    return entry.until if entry else None


def live_final(settings: "Settings", view: View) -> datetime | None:
    """The instant (UTC) before which the live table is final, or None while nothing is."""
    watermark = live_watermark(settings, view, Checkpoint(checkpoint_location(settings, view)).position())
    return watermark - view.limit if watermark else None


def live_table_final(settings: "Settings", view: View) -> datetime | None:
    """The instant (UTC) before which the live table was final after its last micro-batch, whatever has become of its query."""
    for commit in lake.commits(settings, live_of(view)):
        if "position" in commit.record:
            watermark = live_watermark(settings, view, _position(commit))
            return watermark - view.limit if watermark else None
    return None


def live_watermark(settings: "Settings", view: View, position: Mapping[str, Mapping[int, int]]) -> datetime | None:
    """The watermark (UTC) that the view's events have passed at a position of its live query, as far as silver knows it."""
    times = []
    for contract in (CONTRACTS[stream] for stream in view.streams):
        if contract.kind == "events":
            ends = position.get(contract.topic, {})
            newest = newest_at(ledger.entries(settings, Tables.of(contract).log), ends)
            times.append(watermark(contract, newest, ends))
    known = [time for time in times if time is not None]
    return min(known) if known and len(known) == len(times) else None


@dataclass(frozen=True)
class LiveSnapshot:
    """One version of the live table, and the part of the log that its rows come from.

    Args:
        at: when that version was committed (UTC).
        position: per topic and partition, the next offset that the table has not read.
        until: the query has processed all events before this instant (UTC).
        changed_at: when the micro-batch of ``position`` was committed (UTC); rows written later come from later offsets.
    """

    version: int
    at: datetime
    position: Mapping[str, Mapping[int, int]]
    until: datetime
    changed_at: datetime


def live_within(settings: "Settings", view: View, entry: ledger.Entry) -> LiveSnapshot | None:
    """The newest version of the live table that has read nothing beyond an entry of gold's ledger; None if there is none.

    The commit of a micro-batch records where the batch ended. What other writers did to the table after that batch counts as a
    part of it.
    """
    newest: Commit | None = None
    for commit in lake.commits(settings, live_of(view)):
        newest = newest or commit
        writer = commit.record.get("writer")
        if writer == "generation" or (writer == "live" and "position" not in commit.record):
            return None
        if writer != "live":
            continue
        position = _position(commit)
        if _covers(entry, position):
            until = datetime.fromtimestamp(commit.record["watermark"] / 1000, UTC) - view.limit
            return LiveSnapshot(
                newest.version, _committed_at(newest), position, max(until, BEGINNING), _committed_at(commit)
            )
        newest = None
    return None


def live_without_rows(settings: "Settings", view: View) -> LiveSnapshot | None:
    """The snapshot of a live table that is empty because the query has found no rows so far; None if it is another case."""
    # Before the log of the table: rows that are written in between come from later offsets.
    location = checkpoint_location(settings, view)
    position = live_positions(location, view)
    until = (live_watermark(settings, view, position) or BEGINNING) - view.limit
    newest: Commit | None = None
    for commit in lake.commits(settings, live_of(view)):
        newest = newest or commit
        if commit.record.get("writer") in ("live", "generation"):
            return None
    if newest is None or not any(position.values()):
        return None
    at = _committed_at(newest)
    return LiveSnapshot(newest.version, at, position, max(until, BEGINNING), at)


def _covers(entry: ledger.Entry, position: Mapping[str, Mapping[int, int]]) -> bool:
    covered = {(r.topic, r.partition): r.end for r in entry.ranges}
    return all(end <= covered.get((topic, p), 0) for topic, ends in position.items() for p, end in ends.items())


def _position(commit: "Commit") -> dict[str, dict[int, int]]:
    return {t: {int(p): end for p, end in ends.items()} for t, ends in commit.record["position"].items()}


def _committed_at(commit: "Commit") -> datetime:
    return datetime.fromtimestamp(commit.timestamp / 1000, UTC)


def checkpoint_location(settings: "Settings", view: View) -> str:
    """The location of the current checkpoint of the view's live query."""
    return generations.get(settings, view.name).location(settings)


def live_position(checkpoint: str, topic: str) -> dict[int, int]:
    """Per partition, the next offset after a live query's last *committed* micro-batch; empty before the first one."""
    return Checkpoint(checkpoint).position().get(topic, {})


def live_positions(checkpoint: str, view: View) -> dict[str, dict[int, int]]:
    """The same for each topic of a view, after one micro-batch."""
    position = Checkpoint(checkpoint).position()
    return {topic: position.get(topic, {}) for topic in (CONTRACTS[stream].topic for stream in view.streams)}
