"""The demo: start the stack, simulate the shop, unpause the DAGs, and wait for the facts."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from tenacity import (
    RetryError,
    Retrying,
    retry_if_exception_type,
    retry_if_result,
    stop_after_delay,
    wait_fixed,
)

from lockstep.airflow_api import Airflow, AirflowSilent, connected
from lockstep.errors import LockstepError
from lockstep.stack.stack import Stack
from lockstep.status.gather import gather
from lockstep.status.model import Status
from shop.demo import facts
from shop.demo.facts import Fact
from shop.services import SHOP
from shop.simulate.producer import KafkaPythonSender
from shop.simulate.simulation import RunStatus, run_simulation

if TYPE_CHECKING:
    from lockstep.settings import Settings

INGEST, REFINE, MARTS, RECONCILE = "ingest", "refine", "marts", "reconcile"
LATER_DAGS = ("rollup_daily", "maintain")
# Airflow usually parses its DAGs in seconds. The rest is for a machine that is slow or busy.
PARSE_SECONDS = 120
# Four times what the demo takes on two cores, with all views.
TIMEOUT_SECONDS = 2400


class DemoFailed(LockstepError):
    """The demo cannot succeed any more, or not in time. The message says why, and where to read more."""


class Demo:
    """One demo on the stack of ``settings``. If it is run again, it goes on where it stopped.

    Args:
        days: how many of the last days of the history are simulated; None for those of a simulation that was begun, or 28.
    """

    def __init__(self, settings: "Settings", console: Console, days: int | None = None) -> None:
        self.stack = Stack(settings)
        self.console = console
        self.days = days
        self._began = time.monotonic()
        self._reported: dict[str, str] = {}
        self._refine_unpaused = self._marts_requested = self._comparison_requested = False

    def run(self) -> Status:
        """Run the demo to its end, whatever runs already.

        Raises:
            DemoFailed: something went wrong, or a fact did not hold in time.
            StackError: a service did not start.
        """
        self._print("Starting the stack")
        self.stack.up(say=self._say)
        # A shop that an earlier demo has left open: while it is, no layer ever has everything.
        if self.stack.pid(SHOP.name):
            self.stack.stop(SHOP.name)
        with connected(self.stack.settings) as airflow:
            wait_until_parsed(airflow, {INGEST, REFINE, MARTS, RECONCILE, *LATER_DAGS}, PARSE_SECONDS)
            simulated = self._simulate()
            # Airflow runs a DAG as soon as it is unpaused: now there are records to ingest.
            airflow.unpause(INGEST)
            self._print(f"DAG unpaused: {INGEST}")
            self._print("Waiting until every layer has everything, and both layers agree")
            self._wait(airflow, simulated)
            for dag in LATER_DAGS:
                airflow.unpause(dag)
        return self._status()

    def open_shop(self) -> None:
        """Let the shop go on in real time, until the stack is stopped."""
        self.stack.up([SHOP.name], say=lambda line: self._say(line) if line.startswith(SHOP.name) else None)

    def _simulate(self) -> RunStatus:
        self._print("Simulating the shop: orders into PostgreSQL, traffic into Kafka")
        wanted = {} if self.days is None else {"days": self.days}
        with self.console.status("  opening the shop") as bar:
            for status in run_simulation(self.stack.settings, wanted, KafkaPythonSender):
                bar.update(
                    f"  {status.until:%Y-%m-%d %H:%M} {status.share:5.0%}  {status.order_lines:,} order lines, "
                    f"{status.records.total():,} events"
                )
        span = f"{status.plan.start:%Y-%m-%d} to {status.plan.end:%Y-%m-%d}"
        self._print(f"  {span}: {status.order_lines:,} order lines, {status.records.total():,} events acknowledged")
        return status

    def _status(self) -> Status:
        return gather(self.stack.settings, {name: service.state for name, service in self.stack.health().items()})

    def _wait(self, airflow: Airflow, simulated: RunStatus) -> None:
        position = facts.wal_position(self.stack.settings)
        with self.console.status("  looking"):
            wait_for_facts(lambda: self._look(airflow, simulated, position), TIMEOUT_SECONDS)

    def _look(self, airflow: Airflow, simulated: RunStatus, position: str) -> tuple[Status, list[Fact]]:
        settings, plan = self.stack.settings, simulated.plan
        status = self._status()
        raise_on_failure(airflow, status, settings.home / "airflow" / "logs")
        inputs = [facts.captured(settings, position), facts.drained(status, "bronze"), facts.drained(status, "silver")]
        if not self._refine_unpaused and not facts.missing(inputs[:2]):
            # Before, it would compute all views from the topics that bronze has first, and then again from the others.
            airflow.unpause(REFINE)
            self._refine_unpaused = True
        views = [facts.drained(status, "gold"), facts.drained(status, "live")]
        if not self._marts_requested and not facts.missing([*inputs, views[0]]):
            # The days are complete now, so each is built once.
            run_now(airflow, MARTS)
            self._marts_requested = True
        if not self._comparison_requested and not facts.missing([*inputs, *views]):
            # Before, it would take time from both layers, and find most windows open.
            run_now(airflow, RECONCILE)
            self._comparison_requested = True
        current = [
            *inputs,
            *views,
            *facts.reconciled(status, plan.end),
            facts.marts_built(settings),
        ]
        for fact in current:
            if self._reported.get(fact.name) != fact.seen:
                self._reported[fact.name] = fact.seen
                self._print(f"  {'✓' if fact.holds else '…'} {fact.name}: {fact.seen}")
        return status, current

    def _say(self, line: str) -> None:
        self._print(f"  {line}")

    def _print(self, line: str) -> None:
        self.console.print(f"{time.monotonic() - self._began:5.0f} s  {line}", markup=False)


def run_now(airflow: Airflow, dag: str) -> None:
    """Have a DAG run now, once: Airflow runs one that is unpaused for the time of its schedule that was last."""
    if airflow.dags()[dag].paused:
        airflow.unpause(dag)
    else:
        airflow.trigger(dag)


def wait_until_parsed(airflow: Airflow, dags: set[str], seconds: float) -> None:
    """Wait until Airflow knows these DAGs.

    Raises:
        DemoFailed: it does not know all of them in time. The message has the errors of their files.
    """
    missing = Retrying(stop=stop_after_delay(seconds), wait=wait_fixed(1), retry=retry_if_result(bool))
    try:
        missing(lambda: dags - airflow.dags().keys())
    except RetryError:
        errors = "\n".join(f"{file}: {trace}" for file, trace in airflow.import_errors().items())
        raise DemoFailed(
            f"Airflow has not parsed all of {sorted(dags)}.\n{errors}\nSee `lockstep logs airflow-dag-processor`."
        ) from None


def wait_for_facts(look: Callable[[], tuple[Status, list[Fact]]], seconds: float) -> Status:
    """Look again and again until every fact is true; the last status. Where Airflow is too busy to answer, it looks again.

    Raises:
        DemoFailed: some facts are not true in time. The message names them.
        AirflowSilent: at the end of the time, Airflow did not answer.
    """
    attempts = Retrying(
        stop=stop_after_delay(seconds),
        # Each look asks the brokers and Airflow, which are busy with the work that the demo waits for.
        wait=wait_fixed(5),
        retry=retry_if_result(lambda result: bool(facts.missing(result[1]))) | retry_if_exception_type(AirflowSilent),
    )
    try:
        return attempts(look)[0]
    except RetryError as error:
        missing = "\n".join(f"  {f.name}: {f.seen}" for f in facts.missing(error.last_attempt.result()[1]))
        raise DemoFailed(f"After {seconds} s this is still missing:\n{missing}\nSee `lockstep status`.") from None


def raise_on_failure(airflow: Airflow, status: Status, logs: Path) -> None:
    """Stop the demo at once where waiting does not help.

    Raises:
        DemoFailed: a DAG run has failed after all retries, or live and batch differ for no known reason.
    """
    if runs := facts.failures(airflow):
        names = "\n".join(f"  {run.dag} {run.run_id}" for run in runs)
        raise DemoFailed(f"Airflow gave up on:\n{names}\nTheir logs are in {logs}; the UI shows them too.")
    if views := [view for view in status.views if view.unexplained]:
        raise DemoFailed("\n".join(f"{v.name}: {v.unexplained} windows differ, such as {v.sample}" for v in views))
