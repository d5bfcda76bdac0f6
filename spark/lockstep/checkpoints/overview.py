"""The position of each live query, from its checkpoint's files, the brokers and its last published progress. Without Spark."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, partial
from typing import TYPE_CHECKING

from lockstep.contracts import CONTRACTS
from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.live import generations, progress
from lockstep.live.checkpoint import Batch, Checkpoint
from lockstep.live.frontier import live_watermark
from lockstep.live.generation import Generation, Job

if TYPE_CHECKING:
    from lockstep.definition import View
    from lockstep.ledger.ranges import TopicOffsets
    from lockstep.settings import Settings


@dataclass(frozen=True)
class Overview:
    """One query's checkpoint.

    Args:
        job: the job that it shares with other views; empty: it has one of its own.
        batch: the number of the last finished batch; None before the first one.
        batch_at: when that batch was planned (UTC).
        offsets: per topic and partition, the offset at which the next batch starts.
        lag: per topic and partition, how many offsets the topic has beyond that.
        watermark: what the view's events had passed then, as far as silver knows it (UTC).
        state_rows: the last published count of the state's rows; None before the first one.
        state_bytes: the size of the files of the job's state.
    """

    query: str
    generation: int
    job: str
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
        place = f"generation {self.generation} in job {self.job}" if self.job else f"generation {self.generation}"
        lines = [f"{self.query}: {place}, {when}, {self.behind:,} offsets behind"]
        for topic, ends in sorted(self.offsets.items()):
            partitions = (f"{p}: {o:,} (+{self.lag.get(topic, {}).get(p, 0):,})" for p, o in sorted(ends.items()))
            lines.append(f"  {topic}  {'  '.join(partitions)}")
        if self.batch is not None:
            watermark = f"{self.watermark:%F %T} UTC" if self.watermark else "none yet"
            rows = "not counted yet" if self.state_rows is None else f"{self.state_rows:,} rows"
            lines.append(f"  watermark {watermark}; state {rows}, {self.state_bytes:,} bytes")
        return "\n".join(lines)


def _ago(age: timedelta) -> str:
    return str(timedelta(seconds=int(age.total_seconds())))


def overview(settings: "Settings", views: "Iterable[View]") -> list[Overview]:
    """The positions of the views' queries. It asks the brokers once."""
    views = list(views)
    topics = sorted({CONTRACTS[stream].topic for view in views for stream in view.streams})
    bounds = offsets_of_existing_topics(settings, topics)
    current, published = generations.all_current(settings), progress.latest(settings)
    # Several views may share a job.
    read = cache(partial(_read, settings))
    overviews = []
    for view in views:
        generation = current.get(view.name, Generation(view.name))
        latest = published.get(view.name)
        rows = latest.state_rows if latest and latest.generation == generation.number else None
        own = {t: bounds[t] for t in (CONTRACTS[stream].topic for stream in view.streams) if t in bounds}
        of_job = read(generation.job)
        watermark = live_watermark(settings, view, of_job.batch.offsets) if of_job.batch else None
        overviews.append(_overview(generation, of_job, own, rows, watermark))
    return overviews


@dataclass(frozen=True)
class _Read:
    """What the files of a job's checkpoint say: its last finished batch, and the size of its state."""

    batch: Batch | None
    state_bytes: int


def _read(settings: "Settings", job: Job) -> _Read:
    checkpoint = Checkpoint(job.location(settings))
    last = checkpoint.last_batch()
    sizes = (size for path, size in checkpoint.files().items() if path.startswith("state/"))
    return _Read(checkpoint.batch(last) if last is not None else None, sum(sizes))


def _overview(
    generation: Generation,
    read: _Read,
    bounds: "Mapping[str, TopicOffsets]",
    state_rows: int | None,
    watermark: datetime | None,
) -> Overview:
    batch = read.batch
    offsets = {topic: ends for topic, ends in batch.offsets.items() if topic in bounds} if batch else {}
    lag = {
        topic: {p: end - offsets.get(topic, {}).get(p, first) for p, (first, end) in topic_bounds.partitions.items()}
        for topic, topic_bounds in bounds.items()
    }
    return Overview(
        query=generation.query,
        generation=generation.number,
        job=str(generation.job) if generation.shared else "",
        batch=batch.number if batch else None,
        batch_at=_time(batch.planned_at) if batch else None,
        offsets=offsets,
        lag=lag,
        watermark=watermark,
        state_rows=state_rows if batch else None,
        state_bytes=read.state_bytes,
    )


def _time(milliseconds: int) -> datetime | None:
    return datetime.fromtimestamp(milliseconds // 1000, UTC) if milliseconds else None
