"""What some seconds of records cost in batch: each task of a cycle, one after another, with nothing else at work.

On a stack without Airflow and live queries that has a history::

    lockstep up postgres kafka connect spark
    lockstep simulate --days 28
    python benchmarks/batch_cycle.py --rate 100 --seconds 60 --rounds 3

The first round takes the history, and the second one warms up. Prints the CPU seconds of the Spark server with its Python
workers and of this process, and the seconds that passed; the median of the rounds.
"""

import statistics
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from typing import Annotated

import psutil
import typer
from rich.console import Console
from rich.table import Table

from lockstep import settings, tasks
from lockstep.results import Results
from lockstep.stack.stack import Stack
from shop.simulate.keep_open import Pace, keep_open

TASKS: dict[str, Callable[[str], object]] = {
    "ingest events": lambda run: tasks.ingest("events", run, Results()),
    "ingest changes": lambda run: tasks.ingest("changes", run, Results()),
    "silver": lambda run: tasks.refine(run, Results()),
    "gate of silver": lambda run: tasks.gate("silver", run, Results()),
    "gold": lambda run: tasks.roll_up(run, Results()),
    "gate of gold": lambda run: tasks.gate("gold", run, Results()),
}


class Cpu:
    """The CPU seconds of the Spark server and its Python workers, also of those that have ended meanwhile."""

    def __init__(self, server: int) -> None:
        self._server, self._last, self._total = psutil.Process(server), dict[int, float](), 0.0

    def total(self) -> float:
        """The seconds since the first call."""
        now = {}
        for process in (self._server, *self._server.children(recursive=True)):
            try:
                times = process.cpu_times()
                now[process.pid] = times.user + times.system
            except psutil.NoSuchProcess:  # it has just ended
                continue
        if self._last:
            self._total += sum(max(cpu - self._last.get(pid, 0.0), 0.0) for pid, cpu in now.items())
        self._last = now
        return self._total


def send(config: settings.Settings, rate: float, seconds: float) -> int:
    """Keep the shop open for some seconds; the number of records sent."""
    stopping, sent = threading.Event(), 0
    ends = time.monotonic() + seconds
    for so_far in keep_open(config, Pace(rate, 1, {}), stopping):
        sent = so_far.records.total()
        if time.monotonic() > ends:
            stopping.set()
    return sent


def main(
    rate: Annotated[float, typer.Option(help="Records a second.")] = 100,
    seconds: Annotated[float, typer.Option(help="How long the shop is open before each cycle.")] = 60,
    rounds: Annotated[int, typer.Option(help="Cycles that count.")] = 3,
) -> None:
    """Run the cycles, and print the table."""
    config = settings.load()
    server = Stack(config).pid("spark")
    if server is None:
        raise typer.BadParameter("the stack does not run: lockstep up postgres kafka connect spark")
    cpu, costs = Cpu(server), defaultdict[str, list[tuple[float, float, float]]](list)
    cpu.total()
    for number in range(rounds + 2):
        records = send(config, rate, seconds) if number else 0
        for name, task in TASKS.items():
            before, own, began = cpu.total(), time.process_time(), time.monotonic()
            task(f"benchmark-{number}")
            cost = (cpu.total() - before, time.process_time() - own, time.monotonic() - began)
            Console().print(
                f"{number} {records} {name}: " + ", ".join(f"{value:.1f}" for value in cost), highlight=False
            )
            if number > 1:
                costs[name].append(cost)
    table = Table("task", "CPU s, server", "CPU s, client", "seconds")
    for name, measured in costs.items():
        table.add_row(name, *(f"{statistics.median(values):.1f}" for values in zip(*measured, strict=True)))
    Console().print(table)


if __name__ == "__main__":
    typer.run(main)
