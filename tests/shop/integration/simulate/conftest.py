"""The one shop of the integration tests: killed in the middle of its play, with one client, and played on with the other."""

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
from shop.simulate.play import Played, play
from shop.simulate.producer import BulkSender


@pytest.fixture(scope="session")
def killed_at(settings: Settings) -> float:
    """The share of three days that was played when the simulator was killed."""
    command = [sys.executable, "-m", "lockstep.cli", "simulate"]
    # Slow enough to be killed in the middle, fast enough to get there in seconds.
    options = ["--days", "3", "--poisoned", "0.01", "--speed", "20000"]
    child = subprocess.Popen([*command, *options], env=os.environ | environment(settings), stdout=subprocess.DEVNULL)
    patiently = Retrying(
        stop=stop_after_delay(60), wait=wait_fixed(0.05), retry=retry_if_result(lambda share: share < 0.3)
    )
    try:
        return patiently(share_played, settings)
    finally:
        child.kill()
        child.wait()


@pytest.fixture(scope="session")
def second(settings: Settings, killed_at: float) -> Played:
    """What the second run did, to the end, with librdkafka."""
    return list(play(settings, {}, BulkSender))[-1]


@pytest.fixture(scope="session")
def shop(settings: Settings, second: Played) -> Settings:
    """Where the shop is, once it has been played to the end."""
    return settings


def share_played(settings: Settings) -> float:
    """How much of the play's traffic was acknowledged, from 0 to 1."""
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
    """A cursor on the played shop's database."""
    with closing(psycopg2.connect(shop.dsn("shop"))) as database, database.cursor() as opened:
        yield opened


@pytest.fixture
def truth(shop: Settings) -> Path:
    """Where the ground truth lies."""
    return shop.home / "ground_truth"
