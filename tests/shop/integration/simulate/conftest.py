"""The shop of these tests: its simulation is killed in the middle, with one client, and goes on to its end with the other."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg2
import pytest
from psycopg2.extensions import cursor
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep.settings import Settings
from lockstep.stack.services import environment
from shop.simulate.producer import BulkSender
from shop.simulate.simulation import RunStatus, run_simulation


@pytest.fixture(scope="session")
def killed_at(settings: Settings) -> float:
    """The share of three days that was simulated when the simulator was killed."""
    command = [sys.executable, "-m", "lockstep.cli", "simulate"]
    # Slow enough to be killed in the middle, fast enough to get there in seconds.
    options = ["--days", "3", "--poisoned", "0.01", "--speed", "20000"]
    child = subprocess.Popen([*command, *options], env=os.environ | environment(settings), stdout=subprocess.DEVNULL)
    wait_until = Retrying(
        stop=stop_after_delay(60), wait=wait_fixed(0.05), retry=retry_if_result(lambda share: share < 0.3)
    )
    try:
        return wait_until(share_simulated, settings)
    finally:
        child.kill()
        child.wait()


@pytest.fixture(scope="session")
def second(settings: Settings, killed_at: float) -> RunStatus:
    """The status of the second run at its end; it used librdkafka."""
    return list(run_simulation(settings, {}, BulkSender))[-1]


@pytest.fixture(scope="session")
def shop(settings: Settings, second: RunStatus) -> Settings:
    """The settings of the shop, once its simulation has ended."""
    return settings


def share_simulated(settings: Settings) -> float:
    """How much of the simulation's traffic was acknowledged, from 0 to 1."""
    with closing(psycopg2.connect(settings.dsn("shop"))) as database, database.cursor() as sql:
        sql.execute("SELECT to_regclass('simulator.state') IS NOT NULL")
        if sql.fetchone() != (True,):
            return 0.0
        sql.execute(
            "SELECT extract(epoch FROM traffic_until - (plan ->> 'start')::timestamptz) "
            "/ extract(epoch FROM (plan ->> 'end')::timestamptz - (plan ->> 'start')::timestamptz) FROM simulator.state"
        )
        row = sql.fetchone()
    return float(row[0]) if row else 0.0


@pytest.fixture
def sql(shop: Settings) -> Iterator[cursor]:
    """A cursor on the shop's database."""
    with closing(psycopg2.connect(shop.dsn("shop"))) as database, database.cursor() as opened:
        yield opened


@pytest.fixture
def truth(shop: Settings) -> Path:
    """Where the ground truth lies."""
    return shop.home / "ground_truth"
