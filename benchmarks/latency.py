"""The latency of ``live.page_views_per_minute`` (update mode): from an event's acknowledgement until its row is visible.

On a running stack (``lockstep up postgres kafka spark live``; with ``LOCKSTEP_VIEWS=all`` all views run)::

    python benchmarks/latency.py --rate 1000 --seconds 60

Every event is measured, but no row is read: the record of a live commit has the offsets that it includes, and the commit is
visible as soon as its file exists. Prints JSON: p50, p95 and p99 in seconds, over all events after a warm-up.
"""

import argparse
import json
import statistics
import time
import uuid
from bisect import bisect_right
from datetime import UTC, datetime
from pathlib import Path

from confluent_kafka import Producer
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep import lake, settings
from lockstep.contracts import CONTRACTS
from lockstep.kafka_clients import confluent_config, ensure_topics

TABLE = "live.page_views_per_minute"
TOPIC = CONTRACTS["page_views"].topic
PAGES = [f"/product/{n}" for n in range(50)]
Acknowledged = list[tuple[float, int, int]]


def produce(config: settings.Settings, rate: int, seconds: int) -> Acknowledged:
    """Send at an even rate; return (time of the acknowledgement, partition, offset) of each event."""
    acknowledged: Acknowledged = []
    producer = Producer(confluent_config(config) | {"acks": "all", "linger.ms": 5})

    def delivered(error: object, message: object) -> None:
        if error is None:
            acknowledged.append((time.time(), message.partition(), message.offset()))  # type: ignore[attr-defined]

    began = time.monotonic()
    for number in range(rate * seconds):
        while time.monotonic() < began + number / rate:
            producer.poll(max(0.0, min(0.01, began + number / rate - time.monotonic())))
        now = datetime.now(UTC)
        user = f"u{number % 1000}"
        event = {"event_id": uuid.uuid4().hex, "event_time": now.isoformat(), "user_id": user, "session_id": user}
        value = json.dumps(event | {"page": PAGES[number % len(PAGES)]})
        producer.produce(TOPIC, value, user, timestamp=int(now.timestamp() * 1000), on_delivery=delivered)
    producer.flush(30)
    return acknowledged


def commits(config: settings.Settings) -> list[tuple[float, dict[int, int]]]:
    """When each live commit became visible, and its end offsets by partition; oldest first."""
    log = Path(lake.path(config, TABLE)) / "_delta_log"
    visible = [
        ((log / f"{c.version:020d}.json").stat().st_mtime, c.record["position"][TOPIC])
        for c in lake.commits(config, TABLE)
        if c.record.get("writer") == "live"
    ]
    return [(at, {int(p): end for p, end in position.items()}) for at, position in reversed(visible)]


def waits(acknowledged: Acknowledged, seen: list[tuple[float, dict[int, int]]]) -> list[float]:
    """Seconds from each acknowledgement to the first commit that includes the event."""
    ends = {p: [position.get(p, 0) for _, position in seen] for p in {p for _, p, _ in acknowledged}}
    return [seen[bisect_right(ends[p], offset)][0] - at for at, p, offset in acknowledged]


def main() -> None:
    """Run once, and print the latencies."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rate", type=int, default=1000)
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--warm-up", type=int, default=20)
    options = arguments.parse_args()
    config = settings.load()
    ensure_topics(config)
    sent = produce(config, options.rate, options.seconds + options.warm_up)
    last = {p: max(o for _, q, o in sent if q == p) for p in {q for _, q, _ in sent}}

    def all_seen() -> bool:
        newest = commits(config)[-1:]
        return bool(newest) and all(newest[0][1].get(p, 0) > offset for p, offset in last.items())

    Retrying(stop=stop_after_delay(120), wait=wait_fixed(1), retry=retry_if_result(lambda yes: not yes))(all_seen)
    began = min(at for at, _, _ in sent) + options.warm_up
    latencies = waits([event for event in sent if event[0] >= began], commits(config))
    cuts = statistics.quantiles(latencies, n=100)
    figures = {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": max(latencies)}
    print(
        json.dumps(
            {"views": config.views, "rate": options.rate, "events": len(latencies)}
            | {k: round(v, 2) for k, v in figures.items()}
        )
    )


if __name__ == "__main__":
    main()
