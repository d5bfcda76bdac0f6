"""Where each live query is: from its checkpoint's files, the brokers, and what it last said of itself. Without Spark."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lockstep.contracts import CONTRACTS
from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.live import generations, progress
from lockstep.live.checkpoint import Batch, Checkpoint

if TYPE_CHECKING:
    from lockstep.definition import View
    from lockstep.ledger.ranges import TopicOffsets
    from lockstep.settings import Settings


@dataclass(frozen=True)
class Overview:
    """One query's checkpoint.

    Args:
        batch: the last that is done; None before the first.
        batch_at: when it was planned (UTC).
        offsets: per topic and partition, where the next batch begins.
        lag: per topic and partition, the offsets that the topic holds beyond that.
        watermark: UTC.
        state_rows: as the query last said; None where it has said nothing.
        state_bytes: of the files of its state.
    """

    query: str
    generation: int
    batch: int | None
    batch_at: datetime | None
    offsets: Mapping[str, Mapping[int, int]]
    lag: Mapping[str, Mapping[int, int]]
    watermark: datetime | None
    state_rows: int | None
    state_bytes: int

    @property
    def behind(self) -> int:
        """The lag over all partitions."""
        return sum(n for partitions in self.lag.values() for n in partitions.values())

    @property
    def age(self) -> timedelta | None:
        """How long ago the last batch was."""
        return datetime.now(UTC) - self.batch_at if self.batch_at else None

    def __str__(self) -> str:
        when = f"batch {self.batch}, {_ago(self.age)} ago" if self.age is not None else "no batch yet"
        lines = [f"{self.query}: generation {self.generation}, {when}, {self.behind:,} offsets behind"]
        for topic, ends in sorted(self.offsets.items()):
            places = (f"{p}: {o:,} (+{self.lag.get(topic, {}).get(p, 0):,})" for p, o in sorted(ends.items()))
            lines.append(f"  {topic}  {'  '.join(places)}")
        if self.batch is not None:
            watermark = f"{self.watermark:%F %T} UTC" if self.watermark else "none yet"
            rows = "not counted yet" if self.state_rows is None else f"{self.state_rows:,} rows"
            lines.append(f"  watermark {watermark}; state {rows}, {self.state_bytes:,} bytes")
        return "\n".join(lines)


def _ago(age: timedelta) -> str:
    return str(timedelta(seconds=int(age.total_seconds())))


def overview(settings: "Settings", views: "Iterable[View]") -> list[Overview]:
    """Where the views' queries are. Asks the broker once."""
    views = list(views)
    topics = sorted({CONTRACTS[stream].topic for view in views for stream in view.streams})
    held, current, said = (
        offsets_of_existing_topics(settings, topics),
        generations.all_current(settings),
        progress.latest(settings),
    )
    found = []
    for view in views:
        generation = current.get(view.name, generations.Generation(view.name))
        own = said.get(view.name, {})
        rows = own.get("state_rows") if own.get("generation") == generation.number else None
        mine = {t: held[t] for t in (CONTRACTS[stream].topic for stream in view.streams) if t in held}
        found.append(_one(generation, Checkpoint(generation.location(settings)), mine, rows))
    return found


def _one(
    generation: generations.Generation, checkpoint: Checkpoint, held: "Mapping[str, TopicOffsets]", rows: int | None
) -> Overview:
    last = checkpoint.last()
    batch = checkpoint.batch(last) if last is not None else None
    offsets = batch.offsets if batch else {}
    lag = {
        topic: {p: end - offsets.get(topic, {}).get(p, first) for p, (first, end) in bounds.partitions.items()}
        for topic, bounds in held.items()
    }
    size = sum(size for path, size in checkpoint.files().items() if path.startswith("state/"))
    at = batch.planned_at if batch else 0
    return Overview(
        generation.query,
        generation.number,
        last,
        _time(at),
        offsets,
        lag,
        _watermark(batch),
        rows if batch else None,
        size,
    )


def _watermark(batch: Batch | None) -> datetime | None:
    return _time(batch.watermark) if batch else None


def _time(milliseconds: int) -> datetime | None:
    return datetime.fromtimestamp(milliseconds // 1000, UTC) if milliseconds else None
