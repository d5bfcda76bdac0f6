"""An hour of the scenario with duplicates, late rows, disorder and poison: live = batch = oracle for every view, although the
live service is killed five times in it, once together with the Spark server."""

import os
import random
import signal
import time
from datetime import timedelta

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed
from tests.shop.integration.views.conftest import rolled_up, scenario_records
from tests.shop.integration.views.layers import batch_and_live_rows, batch_rows, oracle_rows
from tests.support.ports import started
from tests.support.scenario import send

from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS, chosen
from lockstep.kafka_clients import ensure_topics
from lockstep.live import progress
from lockstep.reconcile.run import reconcile
from lockstep.status.gather import gather_streams

SEEDS = int(os.environ.get("LOCKSTEP_SOAK_SEEDS", "3"))
MINUTES = int(os.environ.get("LOCKSTEP_SOAK_MINUTES", "60"))
# The service ends when its server does.
KILLED = ("live", "live", "spark", "live", "live")


@pytest.fixture
def stack(tmp_path, monkeypatch):
    """PostgreSQL, Kafka, Spark and the live service with all views."""
    monkeypatch.setenv("LOCKSTEP_VIEWS", "all")
    with started(tmp_path / "home") as running:
        ensure_topics(running.settings, CONTRACTS)
        running.up(["live"])
        yield running


@pytest.mark.timeout(3600)
@pytest.mark.parametrize("number", range(SEEDS))
def test_live_is_batch_is_oracle_over_an_hour_with_kills(number, stack, report):
    began, seed = time.monotonic(), random.SystemRandom().randrange(2**32)
    sent = _play(stack, seed)
    waited = _live_has_all(stack)
    rolled_up(stack.settings, CONTRACTS.values(), VIEWS.values())
    patiently = Retrying(
        # A query may still close what its last rows have left to be closed.
        stop=stop_after_delay(180),
        wait=wait_fixed(5),
        retry=retry_if_result(bool),
        retry_error_callback=lambda tried: tried.outcome.result(),
    )
    with connect(stack.settings, "soak") as spark:
        wrong = patiently(_wrong, spark, sent)
        reports = [reconcile(spark, stack.settings, view, "soak") for view in VIEWS.values()]
        wrong += [
            f"{r.view}: {r.verdict} in {r.windows} windows" for r in reports if r.verdict != "equal" or not r.windows
        ]
        dropped = spark.table(progress.TABLE.name).agg({"dropped_rows": "max"}).collect()[0][0]
    count, windows = sum(map(len, sent.values())), sum(r.windows for r in reports)
    report(
        f"| hour {number} | {seed} | {', '.join(KILLED)} | {waited:.0f} | {count}, in {windows} windows, "
        f"{time.monotonic() - began:.0f} s | {not wrong} |"
    )
    assert wrong == []
    assert dropped == 0, "the engine must never decide what is late"


def _wrong(spark, settings, sent):
    """The views of which two of batch, live and oracle differ."""
    found = []
    for name, view in VIEWS.items():
        batch, live = batch_and_live_rows(spark, settings, view)
        found += [f"{name}: live is not batch"] if live != batch else []
        found += (
            [f"{name}: batch is not its oracle"]
            if batch_rows(spark, settings, view) != oracle_rows(name, view, sent)
            else []
        )
    return found


def _play(stack, seed):
    """Play the hour in slices, each once live has the one before, and kill something while it takes all but the last.

    Returns:
        What the broker acknowledged, by stream.
    """
    left = sorted(scenario_records(CONTRACTS, seed, MINUTES), key=lambda one: one.arrival)
    slices = len(KILLED) + 1
    ends = [left[-1].arrival - timedelta(minutes=MINUTES / slices * more) for more in reversed(range(slices))]
    acknowledged = {name: [] for name in CONTRACTS}
    dice = random.Random(seed)
    for number, end in enumerate(ends):
        part = [one for one in left if one.arrival <= end]
        left = left[len(part) :]
        is_last = number == len(KILLED)
        until = end + timedelta(hours=3) if is_last else end
        for name, records in send(stack.settings, CONTRACTS, part, until).items():
            acknowledged[name] += records
        if not is_last:
            time.sleep(dice.uniform(0, 20))  # the moment of the kill is what is random here
            os.kill(stack.pid(KILLED[number]), signal.SIGKILL)
            stack.wait_healthy("spark")
            stack.wait_healthy("live")
            _live_has_all(stack)
    return acknowledged


def _live_has_all(stack):
    """Wait until no live query is behind the log; the seconds that it took."""
    began = time.monotonic()

    def behind():
        lags = [stream.lag for stream in gather_streams(stack.settings, chosen(stack.settings.views))]
        return any(lag for one in lags for layer, lag in one.items() if layer.startswith("live."))

    Retrying(stop=stop_after_delay(1200), wait=wait_fixed(3), retry=retry_if_result(bool))(behind)
    return time.monotonic() - began
