"""How long after its acknowledgement an event shows in ``live.page_views_per_minute`` (update mode).

On a running stack (``lockstep up postgres kafka spark live``; ``LOCKSTEP_VIEWS=all`` runs all views beside it)::

    python benchmarks/latency.py --rate 1000 --seconds 60

Every event counts, without reading a row: a live commit's record says which offsets it has seen, and the commit is visible
from the moment at which its file was there. Prints JSON: p50, p95 and p99 in seconds, over all events after a warm-up.
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
    """Send at an even rate; (time of the acknowledgement, partition, offset) of each event."""
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
    """When each live commit became visible, and the position that it had reached; oldest first."""
    log = Path(lake.path(config, TABLE)) / "_delta_log"
    found = [
        ((log / f"{c.version:020d}.json").stat().st_mtime, c.record["position"][TOPIC])
        for c in lake.commits(config, TABLE)
        if c.record.get("writer") == "live"
    ]
    return [(at, {int(p): end for p, end in position.items()}) for at, position in reversed(found)]


def waits(acknowledged: Acknowledged, seen: list[tuple[float, dict[int, int]]]) -> list[float]:
    """Seconds from each acknowledgement to the first commit that has the event."""
    ends = {p: [position.get(p, 0) for _, position in seen] for p in {p for _, p, _ in acknowledged}}
    return [seen[bisect_right(ends[p], offset)][0] - at for at, p, offset in acknowledged]


def main() -> None:
    """Run once, and print what was measured."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rate", type=int, default=1000)
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--warm-up", type=int, default=20)
    given = arguments.parse_args()
    config = settings.load()
    ensure_topics(config)
    sent = produce(config, given.rate, given.seconds + given.warm_up)
    last = {p: max(o for _, q, o in sent if q == p) for p in {q for _, q, _ in sent}}

    def all_seen() -> bool:
        newest = commits(config)[-1:]
        return bool(newest) and all(newest[0][1].get(p, 0) > offset for p, offset in last.items())

    Retrying(stop=stop_after_delay(120), wait=wait_fixed(1), retry=retry_if_result(lambda done: not done))(all_seen)
    began = min(at for at, _, _ in sent) + given.warm_up
    found = waits([one for one in sent if one[0] >= began], commits(config))
    cuts = statistics.quantiles(found, n=100)
    figures = {"p50": cuts[49], "p95": cuts[94], "p99": cuts[98], "max": max(found)}
    print(
        json.dumps(
            {"views": config.views, "rate": given.rate, "events": len(found)}
            | {k: round(v, 2) for k, v in figures.items()}
        )
    )


if __name__ == "__main__":
    main()
