"""What the steps of the platform cost: files of logs that are read, and seconds."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tests.support.days import Days

from lockstep import ledger
from lockstep.cli.ledger import _newest
from lockstep.cli.ledger import problems as verify
from lockstep.lake.log import Log
from lockstep.ledger import integrity
from lockstep.ledger.event_time import newest_at
from lockstep.ledger.log_files import LogFiles
from lockstep.quality import slices
from lockstep.replay.parse import parse
from lockstep.replay.resolve import resolve


@dataclass
class Cost:
    """What one step has cost.

    Args:
        cpu: seconds of processors: of this process, and where they were asked for of the stack too. Who else uses the machine
            makes a step slower, but hardly changes how much it takes.
        files: files of logs that were read.
        looked: commits that were looked for: the newest one is found from the log's last checkpoint on, in steps that double.
        listed: commits of logs that were listed.
    """

    seconds: float = 0.0
    cpu: float = 0.0
    files: int = 0
    looked: int = 0
    listed: int = 0


def costs(days: Days) -> dict[str, Cost]:
    """What each step of the platform costs on this day; the day's commits of ``write`` included."""
    settings, at = days.settings, days.now
    # A day with rows for the plan, which is always as old.
    asked = {
        "reason": "a day in a hurry",
        "from": at - timedelta(days=1, hours=12),
        "to": at - timedelta(days=1, hours=6),
        "topics": [days.contract.name],
        "layers": ["silver", "gold"],
    }
    long_ago = asked | {"from": days.start, "to": days.start + timedelta(hours=6)}
    steps: dict[str, Callable[[], object]] = {
        "newest entry of three tables": lambda: [ledger.latest(settings, table) for table in days.tables[:3]],
        "a minute's commits": lambda: days.write(at - timedelta(minutes=1)),
        "ranges of a new view": lambda: ledger.pending(settings, ledger.latest(settings, days.silver), None, 1 << 62),
        "times at a position": lambda: newest_at(ledger.entries(settings, days.silver), {0: 1, 1: 1, 7: 0}),
        "slice of a gate": lambda: slices.pending(
            settings, days.silver, ledger.latest(settings, days.silver).version - 1
        ),
        "ledger show": lambda: _newest(settings, days.bronze, 10),
        "plan of a recent replay": lambda: resolve(settings, parse(asked)),
        "plan of a replay of the first day": lambda: resolve(settings, parse(long_ago)),
        "ledger verify": lambda: verify(settings, days.contract),
        "Delta logs verified": lambda: [integrity.problems(settings, table) for table in days.tables],
        "housekeeping": days.look_after,
    }
    found = {}
    for name, step in steps.items():
        found[name] = Cost()
        with measured(found[name]):
            step()
    return found


@contextmanager
def measured(cost: Cost) -> Iterator[None]:
    """Add what the block costs."""
    originals = {name: getattr(Log, name) for name in ("read", "_has", "versions")}
    files = LogFiles

    def counting(name: str) -> Any:
        def call(log: Any, *arguments: Any) -> Any:
            found = originals[name](log, *arguments)
            if name == "versions":
                cost.listed += len(found)
            elif name == "_has":
                cost.looked += 1
            else:
                cost.files += 1
            return found

        return call

    read = files.read

    def reading(self: Any, name: str) -> bytes:
        cost.files += 1
        return read(self, name)

    for name in originals:
        setattr(Log, name, counting(name))
    files.read = reading  # type: ignore[method-assign]
    start, taken = time.monotonic(), time.process_time()
    try:
        yield
    finally:
        cost.seconds += time.monotonic() - start
        cost.cpu += time.process_time() - taken
        files.read = read  # type: ignore[method-assign]
        for name, original in originals.items():
            setattr(Log, name, original)
