"""Event time against processing time: what a restart does to a rate.

A producer clicks at a steady rate. A live query takes the clicks, is stopped in the middle, and is started again from its
checkpoint. Counted by the time of the click the rate is flat; counted by the time of processing it has a hole and a spike, as
if nobody had clicked for a while and then everybody at once. Run it on a stack that is up:

    .venv/bin/python docs/examples/restart_spike.py
"""

import json
import sys
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from threading import Event
from typing import Any

from confluent_kafka import Producer
from pyarrow import fs
from pyspark.sql import functions as F
from rich.console import Console
from rich.table import Table

from lockstep import settings
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.errors import LockstepError
from lockstep.ingest.source import read_stream
from lockstep.kafka_clients import confluent_config, ensure_topics
from lockstep.settings import Settings

PER_SECOND = 10


@dataclass(frozen=True)
class Rates:
    """Clicks per bucket of ``seconds``, by each of the two times; buckets count from the first click."""

    seconds: int
    clicked: Mapping[int, int]
    processed: Mapping[int, int]

    @property
    def buckets(self) -> range:
        """From the first to the last bucket of either."""
        return range(max(*self.clicked, *self.processed) + 1)


def demonstrate(config: Settings, phase: int, bucket: int) -> Rates:
    """Take clicks for ``phase`` seconds, be down for as long, and go on for as long again."""
    topic = f"restart_spike_{uuid.uuid4().hex[:8]}"
    ensure_topics(config, {topic: replace(CONTRACTS["clicks"], name=topic, topic=topic)})
    place = f"{config.lake.rstrip('/')}/_examples/{topic}"
    try:
        with connect(config, "example") as spark, clicking(config, topic) as clicks:
            run(spark, config, topic, place, clicks, phase).stop()
            clicks.wait(phase)
            query = run(spark, config, topic, place, clicks, phase)
            clicks.set()
            query.processAllAvailable()
            query.stop()
            rows = spark.read.parquet(f"{place}/rows").select("clicked_at", "processed_at").collect()
    finally:
        filesystem, root = fs.FileSystem.from_uri(place)
        filesystem.delete_dir(root)
    return rates([tuple(row) for row in rows], bucket)


def rates(times: list[tuple[Any, ...]], bucket: int) -> Rates:
    """Count (clicked, processed) by both."""
    first = min(clicked for clicked, _ in times)
    length = timedelta(seconds=bucket)
    counts = [Counter((time - first) // length for time in column) for column in zip(*times, strict=True)]
    return Rates(bucket, *counts)


@contextmanager
def clicking(config: Settings, topic: str) -> Iterator[Event]:
    """Click at a steady rate in the background, until the event is set or the block ends."""
    enough = Event()

    def click() -> None:
        producer = Producer(confluent_config(config) | {"log_level": 0})
        while not enough.wait(1 / PER_SECOND):
            now = datetime.now(UTC)
            producer.produce(topic, json.dumps({"clicked_at": now.isoformat()}), timestamp=int(now.timestamp() * 1000))
            producer.poll(0)
        producer.flush(10)

    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(click)
        try:
            yield enough
        finally:
            enough.set()
        done.result()


def run(spark: Any, config: Settings, topic: str, place: str, clicks: Event, seconds: int) -> Any:
    """Keep the live query running for a while, as the live service does: one that fails is started again."""
    query = start(spark, config, topic, place)
    for _ in range(seconds):
        clicks.wait(1)
        if not query.isActive:
            query = start(spark, config, topic, place)
    return query


def start(spark: Any, config: Settings, topic: str, place: str) -> Any:
    """The live query, from its checkpoint."""
    value = F.from_json(F.col("value").cast("string"), "clicked_at TIMESTAMP")
    clicks = read_stream(spark, config, topic).select(
        value["clicked_at"].alias("clicked_at"), F.current_timestamp().alias("processed_at")
    )
    return (
        clicks.writeStream.format("parquet")
        .option("checkpointLocation", f"{place}/checkpoint")
        .trigger(processingTime="1 second")
        .start(f"{place}/rows")
    )


def main() -> None:
    """Run it for a minute, and show both rates."""
    found = demonstrate(settings.load(), phase=20, bucket=5)
    table = Table("second", "by event time", "", "by processing time", "", box=None, title="Clicks per 5 seconds")
    for number in found.buckets:
        clicked, processed = found.clicked.get(number, 0), found.processed.get(number, 0)
        bars = ["█" * round(count / PER_SECOND) for count in (clicked, processed)]
        table.add_row(str(number * found.seconds), str(clicked), bars[0], str(processed), bars[1])
    Console(highlight=False).print(table)


if __name__ == "__main__":
    try:
        main()
    except LockstepError as error:
        sys.exit(str(error))
