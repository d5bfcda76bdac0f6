"""The cost of reconciliation compared with the batch run of the same windows, in CPU seconds of the Spark server.

On a running stack (``lockstep up postgres kafka spark``), with a stream and tables of its own, which are not deleted::

    python benchmarks/reconcile.py --minutes 5 --rate 1000 --rounds 5

Each round sends some minutes of page views, waits until live has processed them, and measures one run each of ingest, refine,
roll_up and reconcile. Live does not run meanwhile. The first round warms up the server, and does not count. Prints JSON.
"""

import argparse
import json
import uuid
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import psutil
from confluent_kafka import Producer

from lockstep import service, settings
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import confluent_config, ensure_topics
from lockstep.reconcile.run import reconcile
from lockstep.refine.silver import refine

START = datetime(2026, 1, 1, tzinfo=UTC)
PAGES = [f"/product/{n}" for n in range(50)]
Costs = dict[str, list[float]]


def server(config: settings.Settings) -> psutil.Process:
    """The process that listens on the Spark server's port."""
    listening = (c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN and c.laddr)
    pid = next((c.pid for c in listening if c.laddr.port == config.spark_port), None)
    if pid is None:
        raise SystemExit(f"Nothing listens on port {config.spark_port}: `lockstep up postgres kafka spark` first.")
    return psutil.Process(pid)


def cpu_seconds(process: psutil.Process) -> float:
    """The CPU seconds that the server and its Python workers have used until now."""
    times = [p.cpu_times() for p in (process, *process.children(recursive=True))]
    ended = process.cpu_times()
    return sum(t.user + t.system for t in times) + ended.children_user + ended.children_system


@contextmanager
def measured(process: psutil.Process, costs: Costs, step: str) -> Iterator[None]:
    """Add the CPU seconds of the block to the costs of a step."""
    before = cpu_seconds(process)
    yield
    costs[step].append(cpu_seconds(process) - before)


def send(config: settings.Settings, contract: Contract, begin: datetime, minutes: int, rate: int) -> None:
    """Send page views at an even rate of event time, and a heartbeat that closes their windows."""
    producer = Producer(confluent_config(config) | {"linger.ms": 50, "queue.buffering.max.messages": 1_000_000})
    for number in range(minutes * 60 * rate):
        at = begin + timedelta(seconds=number / rate)
        user = f"u{number % 1000}"
        event = {"event_id": uuid.uuid4().hex, "event_time": at.isoformat(), "user_id": user, "session_id": user}
        value = json.dumps(event | {"page": PAGES[number % len(PAGES)]})
        producer.produce(contract.topic, value, user, timestamp=int(at.timestamp() * 1000) + 500)
        producer.poll(0)
    closed = int((begin + timedelta(minutes=minutes, seconds=30)).timestamp() * 1000)
    for partition in range(contract.partitions):
        headers: list[tuple[str, Any]] = [("lockstep-heartbeat", b"1")]
        producer.produce(contract.topic, None, None, partition, timestamp=closed, headers=headers)
    producer.flush(60)


def run_live(config: settings.Settings, view: View) -> None:
    """Run the live query until it has processed the whole log."""
    with connect(config, "live") as own:
        running = service.start(own, config, view)
        running.processAllAvailable()
        running.stop()


def main() -> None:
    """Run all rounds, and print the cost of each step."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--minutes", type=int, default=5)
    arguments.add_argument("--rate", type=int, default=1000)
    arguments.add_argument("--rounds", type=int, default=5)
    options = arguments.parse_args()
    config, name = settings.load(), f"page_views_{uuid.uuid4().hex[:8]}"
    contract = CONTRACTS[name] = replace(CONTRACTS["page_views"], name=name, topic=name)
    view = replace(VIEWS["page_views_per_minute"], name=f"per_minute_{name[-8:]}", input=name)  # type: ignore[call-arg]
    ensure_topics(config, {name: contract})
    process, costs = server(config), defaultdict(list)
    steps: dict[str, Callable[[Any], Any]] = {
        "ingest": lambda spark: ingest(spark, config, contract, "benchmark"),
        "refine": lambda spark: refine(spark, config, contract, "benchmark"),
        "roll_up": lambda spark: roll_up(spark, config, view, "benchmark"),
        "reconcile": lambda spark: reconcile(spark, config, view, "benchmark"),
    }
    windows = 0
    with connect(config, "benchmark") as spark:
        for number in range(options.rounds + 1):
            send(config, contract, START + timedelta(minutes=number * options.minutes), options.minutes, options.rate)
            run_live(config, view)
            for step, work in steps.items():
                with measured(process, costs, step):
                    result = work(spark)
            (report,) = result
            windows += report.windows
            if report.verdict != "equal":
                raise SystemExit(f"the layers differ: {report}")
    counted = {step: sum(seconds[1:]) for step, seconds in costs.items()}
    batch = sum(seconds for step, seconds in counted.items() if step != "reconcile")
    print(
        json.dumps(
            {
                "events": options.minutes * 60 * options.rate * options.rounds,
                "windows": windows,
                "cpu_seconds": {step: round(seconds, 2) for step, seconds in counted.items()},
                "reconcile_of_batch": round(counted["reconcile"] / batch, 3),
                "reconcile_of_roll_up": round(counted["reconcile"] / counted["roll_up"], 3),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()
