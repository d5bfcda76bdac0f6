"""What the real steps cost on a day: with Spark and Kafka, each for the records of half a minute."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import psutil
from tests.support.costs import Cost, measured
from tests.support.real_days import RealDays

from lockstep import service
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.definition.tables import gold_of
from lockstep.ingest.bronze import ingest
from lockstep.quality.gate import run_gates
from lockstep.reconcile.run import reconcile
from lockstep.refine.silver import refine
from lockstep.replay import run
from lockstep.replay.parse import parse
from lockstep.replay.record import find
from lockstep.settings import Settings
from lockstep.stack.services import run_dir
from lockstep.status.gather import gather

# The first time, a step works off what was laid down without it, and fills caches: it does not count. The compiler and the
# collector of a server that has just started take some seconds at any step, so one or two times would not say what a step costs.
TIMES, REPLAYS = 5, 2
RUN = "a day in a hurry"


def real_costs(days: RealDays) -> dict[str, Cost]:
    """The median of what each step has cost, after a first time that does not count; of replays the least."""
    # After the last commit of the day, and before those of the next one.
    moments = iter([days.now - timedelta(minutes=30 - 2 * n) for n in range(TIMES + REPLAYS + 3)])
    steps = _median([_measured(days, _steps(days, next(moments))) for _ in range(TIMES + 1)][1:])
    replays = _median([_measured(days, _replays(days, next(moments))) for _ in range(REPLAYS + 1)][1:])
    # A replay of silver leaves machines that are computed from history once.
    days.send(next(moments))
    days.take()
    return steps | replays


def _median(rounds: list[dict[str, Cost]]) -> dict[str, Cost]:
    """Of two, the lower one."""
    return {
        name: sorted((costs[name] for costs in rounds), key=lambda cost: cost.cpu)[(len(rounds) - 1) // 2]
        for name in rounds[0]
    }


def _steps(days: RealDays, at: datetime) -> dict[str, Callable[[], object]]:
    spark, settings = days.spark, days.settings
    views = (days.view, days.keyed)
    days.send(at)
    days.take()
    days.send(at + timedelta(minutes=1))
    return {
        "ingest": lambda: ingest(spark, settings, days.contract, RUN),
        "refine": lambda: refine(spark, settings, days.contract, RUN),
        "roll_up of windows": lambda: roll_up(spark, settings, days.view, RUN),
        "roll_up of machines": lambda: roll_up(spark, settings, days.keyed, RUN),
        "gates": lambda: _gates(days),
        "live, from its checkpoint": lambda: [_live(settings, view) for view in views],
        "reconcile": lambda: [_reconcile(days, view) for view in views],
        "status": lambda: gather(settings, {}),
    }


def _replays(days: RealDays, at: datetime) -> dict[str, Callable[[], object]]:
    recent = days.now - timedelta(days=1, hours=12)
    days.send(at)
    days.take()
    _gates(days)
    return {
        "replay of a recent interval": lambda: _replay(days, recent, f"recent {at}"),
        "gates after a replay": lambda: _gates(days),
        "replay of the first day": lambda: _replay(days, days.start, f"first {at}"),
    }


def _measured(days: RealDays, steps: dict[str, Callable[[], object]]) -> dict[str, Cost]:
    found = {}
    for name, step in steps.items():
        found[name] = Cost()
        before = cpu_of_all(days.settings)
        with measured(found[name]):
            step()
        found[name].cpu = cpu_of_all(days.settings) - before
    return found


def _gates(days: RealDays) -> None:
    run_gates(days.spark, days.settings, [days.silver, *map(gold_of, (days.view, days.keyed))], RUN)


def cpu_of_all(settings: Settings) -> float:
    """The processors' seconds that the stack, with what has ended of it, and this process have taken."""
    supervisor = psutil.Process(int((run_dir(settings) / "supervisord.pid").read_text()))
    # Without children that have ended: among them is the stack of an earlier start.
    taken = time.process_time()
    for process in (supervisor, *supervisor.children(recursive=True)):
        try:
            taken += sum(process.cpu_times()[:4])
        except psutil.NoSuchProcess:  # its parent has its time now
            continue
    return taken


def _live(settings: Any, view: Any) -> None:
    """Start the view's query, which reads what is new, and stop it."""
    with connect(settings, "live") as own:
        running = service.start(own, settings, view)
        running.processAllAvailable()
        running.stop()


def _reconcile(days: RealDays, view: Any) -> None:
    report = reconcile(days.spark, days.settings, view, RUN)
    assert (report.verdict, report.unexplained) == ("equal", 0), report


def _replay(days: RealDays, start: Any, reason: str) -> None:
    """Replay six hours of silver and gold, in which nothing changes."""
    spark, settings = days.spark, days.settings
    request = parse(
        {
            "reason": reason,
            "from": start,
            "to": start + timedelta(hours=6),
            "topics": [days.contract.name],
            "layers": ["silver", "gold"],
            "approve": "by_rule",
            "max_changed_percent": 0,
        }
    )
    name = run.identify(request)
    run.open_replay(spark, settings, request, "test", RUN, name)
    run.compute(spark, settings, name, RUN)
    run.compare(spark, settings, name, RUN)
    run.approve_by_rule(spark, settings, name, RUN)
    run.promote(spark, settings, name, RUN)
    replay = find(settings, name)
    assert replay.compared and not replay.compared.changed, replay
