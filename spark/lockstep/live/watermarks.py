"""How far event time has come in the partitions that a job reads. Decided by the log alone. Pure.

The watermark of a partition is the newest Kafka timestamp in it, less the ``max_out_of_orderness`` of its contract (Flink's
bounded out-of-orderness). A *clock* is a set of streams, those of which a view reads events: it shows the lowest watermark of
all their partitions. Batch follows the same rule (:mod:`lockstep.refine.watermarks`).
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lockstep.contracts import of_kind

if TYPE_CHECKING:
    from lockstep.definition import View


@dataclass(frozen=True)
class EventStream:
    """What the watermarks of a stream depend on.

    Args:
        partitions: those that it has when the job starts for the first time.
        out_of_orderness: the contract's ``max_out_of_orderness`` in milliseconds.
    """

    partitions: Collection[int]
    out_of_orderness: int


def clock_of(view: "View") -> str:
    """The clock of a view: the names of the streams of which it reads events. It reads none: an empty text."""
    return ",".join(sorted(of_kind("events", view.streams)))


@dataclass
class Watermarks:
    """The watermarks of a job. All times are milliseconds since the epoch (UTC).

    Args:
        streams: the job's event streams, by name.
        newest: by stream and partition, the newest timestamp so far.
        shown: by clock, the latest time that it has shown. A clock never goes back.
        partitions: by stream, those for whose first record clocks wait. One that is added later counts from its first record on,
            also after a restart: a micro-batch that runs again must show the same time, or its rows would come twice.
        since: by view, the time from which its events count, where the machines that the job began with have processed those
            before (microseconds).
    """

    streams: Mapping[str, EventStream]
    newest: dict[str, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    shown: dict[str, int] = field(default_factory=dict)
    partitions: dict[str, list[int]] = field(default_factory=dict)
    since: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.partitions = {name: [*stream.partitions] for name, stream in self.streams.items()}

    def after(self, stream: str, partition: int, timestamp: int) -> int:
        """The watermark of a partition after its next record. Records must come in the order of their offsets."""
        newest = self.newest[stream][partition] = max(timestamp, self.newest[stream].get(partition, timestamp))
        return newest - self.streams[stream].out_of_orderness

    def show(self, clocks: Iterable[str]) -> dict[str, int]:
        """What the clocks show now: 0 while a partition of one of its streams has had no record."""
        for clock in clocks:
            self.shown[clock] = max(self.shown.get(clock, 0), min(map(self._lowest, clock.split(","))))
        return self.shown

    def _lowest(self, stream: str) -> int:
        newest, of = self.newest.get(stream, {}), self.streams.get(stream)
        if of is None or not newest or not newest.keys() >= {*self.partitions[stream]}:
            return 0
        return min(newest.values()) - of.out_of_orderness

    def dump(self) -> str:
        """Their text, for the state."""
        return json.dumps(
            {"newest": self.newest, "shown": self.shown, "partitions": self.partitions, "since": self.since}
        )

    def load(self, text: str) -> None:
        """Go on from a text of :meth:`dump`."""
        stored = json.loads(text)
        for stream, partitions in stored["newest"].items():
            self.newest[stream] = {int(partition): newest for partition, newest in partitions.items()}
        self.shown = stored["shown"]
        # A state of before has none.
        self.partitions |= stored.get("partitions", {})
        self.since = stored.get("since", {})
