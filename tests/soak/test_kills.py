"""Kills in the middle of the flow, again and again, each at a random part and moment."""

import os
import random
import signal
import time

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed
from tests.support import retail_oracle
from tests.support.shop import Shop

from lockstep.contracts import CONTRACTS
from lockstep.status.gather import gather

ROUNDS = int(os.environ.get("LOCKSTEP_SOAK_ROUNDS", "20"))
PARTS = ("spark", "kafka", "postgres", "connect", "airflow-scheduler", "airflow-api-server", "live")


@pytest.mark.timeout(3600)
def test_the_sums_hold_after_every_kill(demo, report):
    sent = 0
    for round_number in range(ROUNDS):
        seed = random.SystemRandom().randrange(2**32)
        dice = random.Random(seed)
        shop = Shop(demo.settings, CONTRACTS["page_views"])
        for n in range(dice.randrange(200, 2000)):
            shop.view(f"soak-{seed}-{n}", n, user_id=f"u{dice.randrange(50)}")
        part = dice.choice(PARTS)
        time.sleep(dice.uniform(0, 30))  # the moment of the kill is what is random here
        killed_at = time.monotonic()
        os.kill(demo.stack.pid(part), signal.SIGKILL)
        shop.flush()
        sent += len(shop.acknowledged)
        demo.stack.wait_healthy(part)
        status = _settled(demo)
        stream = next(s for s in status.streams if s.name == "page_views")
        fits = stream.bronze == len(retail_oracle.records(demo.settings.home, "page_views")) + sent and stream.adds_up
        took = time.monotonic() - killed_at
        report(f"| {round_number} | {seed} | {part} | {took:.0f} | {len(shop.acknowledged)} | {fits} |")
        assert fits, (seed, part, stream)
        assert status.problems == [], (seed, part)


def _settled(demo):
    """The status once nothing lags behind any more."""
    patiently = Retrying(stop=stop_after_delay(600), wait=wait_fixed(3), retry=retry_if_result(_lags))
    return patiently(lambda: gather(demo.settings, {name: h.state for name, h in demo.stack.health().items()}))


def _lags(status):
    return not status.streams or any(n for s in status.streams for n in s.lag.values()) or status.problems
