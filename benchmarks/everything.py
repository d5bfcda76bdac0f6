"""The whole platform with everything on: all views in both layers, Airflow's DAGs, the shop open at a given rate.

On a running stack whose history is done (``make demo``, then ``LOCKSTEP_VIEWS=all lockstep up``)::

    python benchmarks/everything.py --rate 100 --minutes 10 --warm-up 5

A record is visible in ``live.<view>`` or ``gold.<view>`` when a commit whose record covers its offset exists. A micro-batch
without rows makes no commit, so for live layers the checkpoint's commit log counts too. Of each record of all topics the time
from its Kafka timestamp until then is taken, per view and layer: of the traffic, that is when it was sent, just before it was
acknowledged, and of a captured table when Debezium sent it. Prints a table, and writes all figures as JSON.
"""

import argparse
import json
import statistics
import threading
import time
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from lockstep import lake, settings
from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.registry import chosen
from lockstep.definition.tables import gold_of
from lockstep.ingest.consumer import read_small
from lockstep.ingest.offsets import offsets_at, topic_offsets
from lockstep.ledger.ranges import Range, decode
from lockstep.live import generations
from lockstep.live.checkpoint import Checkpoint
from lockstep.live.generation import Generation
from lockstep.stack.services import run_dir
from shop.simulate.keep_open import Pace, keep_open

# When something was committed, and by topic and partition until which offset.
Position = tuple[float, dict[tuple[str, int], int]]
Positions = list[Position]
LAYERS = ("live", "gold")


@dataclass
class Load:
    """The records of a time: by topic and partition, their offsets and Kafka timestamps."""

    offsets: dict[tuple[str, int], list[int]] = field(default_factory=lambda: defaultdict(list))
    times: dict[tuple[str, int], list[float]] = field(default_factory=lambda: defaultdict(list))

    def read(self, config: settings.Settings, topics: set[str], since: float, until: float) -> None:
        """Read all records of these topics that have a timestamp from ``since`` until ``until``."""
        for topic in topics:
            ends = topic_offsets(config, topic).partitions
            firsts = offsets_at(config, [(topic, p) for p in ends], datetime.fromtimestamp(since, UTC))
            ranges = [Range(topic, "", p, start, ends[p][1]) for (_, p), start in firsts.items()]
            for record in read_small(config, ranges).select(["partition", "offset", "timestamp"]).to_pylist():
                at = record["timestamp"].timestamp()
                if since <= at < until:
                    self.offsets[topic, record["partition"]].append(record["offset"])
                    self.times[topic, record["partition"]].append(at)


def trade(config: settings.Settings, rate: float, stopping: threading.Event) -> None:
    """Keep the shop open at this rate until ``stopping`` is set."""
    for _ in keep_open(config, Pace(rate, 1, {}), stopping):
        pass


@dataclass
class Watch:
    """When each view's layers first covered which offsets, by the times of their commits.

    It looks every second at the checkpoints, and every fifth time at gold, so that it takes little from what it measures.
    """

    config: settings.Settings
    views: list[View]
    seen: dict[tuple[str, str], Positions] = field(default_factory=lambda: defaultdict(list))

    def run(self, stopping: threading.Event) -> None:
        """Look until ``stopping`` is set."""
        looks = 0
        while not stopping.wait(1):
            current = generations.all_current(self.config)
            by_checkpoint = defaultdict(list)
            for view in self.views:
                by_checkpoint[current.get(view.name, Generation(view.name)).location(self.config)].append(view)
            for location, views in by_checkpoint.items():
                self._saw("live", views, self._live(Checkpoint(location)))
            if looks % 5 == 0:
                for view in self.views:
                    self._saw("gold", [view], self._gold(view))
            looks += 1

    def _saw(self, layer: str, views: list[View], found: Position | None) -> None:
        for view in views:
            history = self.seen[layer, view.name]
            if found and (not history or history[-1][1] != found[1]):
                history.append(found)

    def _live(self, checkpoint: Checkpoint) -> Position | None:
        last = checkpoint.last_batch()
        if last is None:
            return None
        at = Path(checkpoint.location, "commits", str(last)).stat().st_mtime
        return at, {(t, p): end for t, ends in checkpoint.batch(last).offsets.items() for p, end in ends.items()}

    def _gold(self, view: View) -> Position | None:
        newest = next((c for c in lake.commits(self.config, gold_of(view)) if "ranges" in c.record), None)
        if newest is None:
            return None
        return newest.timestamp / 1000, {(r.topic, r.partition): r.end for r in decode(newest.record["ranges"])}


def waits(load: Load, view: View, positions: Positions) -> Iterator[float]:
    """Seconds from each record's timestamp until the layer covered it, or until now."""
    topics = {CONTRACTS[stream].topic for stream in view.streams}
    for place in [place for place in load.offsets if place[0] in topics]:
        ends = [ends.get(place, 0) for _, ends in positions]
        for offset, at in zip(load.offsets[place], load.times[place], strict=True):
            covered = bisect_right(ends, offset)
            yield (positions[covered][0] if covered < len(positions) else time.time()) - at


def processes(config: settings.Settings) -> Iterator[tuple[psutil.Process, str]]:
    """The processes of the stack, and their parts of it."""
    supervisor = psutil.Process(int((run_dir(config) / "supervisord.pid").read_text()))
    for process in (supervisor, *supervisor.children(recursive=True)):
        try:
            part = part_of(" ".join(process.cmdline()))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            # It has just ended.
            continue
        yield process, part


PARTS = {
    "kafka.Kafka": "kafka",
    "ConnectDistributed": "connect",
    "SparkSubmit": "spark server",
    "pyspark": "spark's python",
    "lockstep.sink": "spark's python",
    "connect_first": "spark's python",
    "lockstep.monitor": "monitor",
    "lockstep.service": "live service",
    "postgres": "postgres",
    "airflow": "airflow",
    "supervisord": "supervisor",
}


def part_of(command: str) -> str:
    """The part of the platform that a command line belongs to."""
    return next((part for mark, part in PARTS.items() if mark in command), "other")


class Meter(threading.Thread):
    """CPU seconds by part, including those of processes that have ended meanwhile, and the memory of all (PSS, bytes)."""

    def __init__(self, config: settings.Settings, stopping: threading.Event) -> None:
        super().__init__()
        self.config, self.stopping, self.cpu, self.memory = config, stopping, defaultdict(float), []

    def run(self) -> None:
        """Look every five seconds until the event is set, and every sixth time at the memory, which takes longer."""
        before, looks = self._cpu(), 0
        while not self.stopping.wait(5):
            now = self._cpu()
            for pid, (part, cpu) in now.items():
                self.cpu[part] += max(cpu - before[pid][1] if pid in before else cpu, 0)
            before = now
            if looks % 6 == 0:
                self.memory.append(self._memory())
            looks += 1

    def _cpu(self) -> dict[int, tuple[str, float]]:
        found = {}
        for process, part in processes(self.config):
            with suppress(psutil.NoSuchProcess):
                cpu = process.cpu_times()
                found[process.pid] = part, cpu.user + cpu.system
        return found

    def _memory(self) -> int:
        found = 0
        for process, _ in processes(self.config):
            with suppress(psutil.NoSuchProcess, psutil.AccessDenied):
                found += process.memory_full_info().pss
        return found


def quantiles(seconds: list[float]) -> dict[str, float]:
    """p50, p95 and the greatest."""
    cuts = statistics.quantiles(seconds, n=100) if len(seconds) > 1 else seconds * 99
    return {"p50": round(cuts[49], 1), "p95": round(cuts[94], 1), "max": round(max(seconds), 1)} if seconds else {}


def dropped(config: settings.Settings) -> int:
    """The rows that Spark dropped as too late, of all live queries, in their published progress."""
    published = (c.record["progress"] for c in lake.commits(config, "ops.live_progress") if "progress" in c.record)
    return sum(query["dropped_rows"] for progress in published for query in progress.values())


def main() -> None:
    """Run once, print the table, and write the figures."""
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--rate", type=float, default=100)
    arguments.add_argument("--minutes", type=float, default=10)
    arguments.add_argument("--warm-up", type=float, default=5, help="minutes before the first record that counts")
    arguments.add_argument("--json", type=Path, help="where the figures are written")
    options = arguments.parse_args()
    config, console = settings.load(), Console(width=120)
    views, load = list(chosen(config.views)), Load()
    watch, sending, looking = Watch(config, views), threading.Event(), threading.Event()
    threads = [
        threading.Thread(target=trade, args=(config, options.rate, sending)),
        threading.Thread(target=watch.run, args=(looking,)),
    ]
    for thread in threads:
        thread.start()
    time.sleep(options.warm_up * 60)
    metering = threading.Event()
    meter, since = Meter(config, metering), time.time()
    meter.start()
    time.sleep(options.minutes * 60)
    until = time.time()
    metering.set()
    # What was sent last has as long to arrive as a batch cycle may take.
    sending.set()
    time.sleep(150)
    looking.set()
    for thread in (*threads, meter):
        thread.join()
    load.read(config, {CONTRACTS[stream].topic for view in views for stream in view.streams}, since, until)
    figures: dict[str, Any] = {"rate": options.rate, "minutes": options.minutes, "views": {}}
    table = Table("view", *(f"{layer} {name}" for layer in LAYERS for name in ("p50", "p95", "max")))
    of_layer: dict[str, list[float]] = defaultdict(list)
    for view in views:
        row = {layer: list(waits(load, view, watch.seen[layer, view.name])) for layer in LAYERS}
        for layer in LAYERS:
            of_layer[layer] += row[layer]
        figures["views"][view.name] = {layer: quantiles(row[layer]) for layer in LAYERS}
        table.add_row(view.name, *(str(v) for layer in LAYERS for v in quantiles(row[layer]).values()))
    figures["all"] = {layer: quantiles(of_layer[layer]) for layer in LAYERS}
    figures["worst_p95"] = {layer: max(v[layer].get("p95", 0) for v in figures["views"].values()) for layer in LAYERS}
    figures["records"] = sum(map(len, load.times.values()))
    figures["cpu_seconds_a_minute"] = {part: round(cpu / options.minutes, 1) for part, cpu in meter.cpu.items()}
    figures["memory_gb"] = round(max(meter.memory) / 1e9, 2)
    figures["dropped_rows"] = dropped(config)
    console.print(table)
    console.print_json(json.dumps({k: v for k, v in figures.items() if k != "views"}))
    if options.json:
        options.json.write_text(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
