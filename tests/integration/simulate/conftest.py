"""A shop that was killed in the middle of its play, with one client, and went on to the end with the other."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg2
import pytest
from psycopg2.extensions import cursor
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep.settings import LOOPBACK, Settings
from lockstep.simulate.play import Played, play
from lockstep.simulate.producer import BulkSender
from lockstep.stack.parts import environment
from lockstep.stack.stack import Stack

PORTS = ("postgres_port", "kafka_port", "kafka_controller_port")


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on; held together until all are known, so that they differ."""
    with ExitStack() as held:
        sockets = [held.enter_context(closing(socket.socket())) for _ in range(count)]
        for one in sockets:
            one.bind((LOOPBACK, 0))
        return [one.getsockname()[1] for one in sockets]


@pytest.fixture(scope="session")
def empty_shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """PostgreSQL and a broker of these tests alone: a play leaves its mark on both."""
    ports = dict(zip(PORTS, free_ports(len(PORTS)), strict=True))
    stack = Stack(Settings(home=tmp_path_factory.mktemp("shop"), **ports))
    try:
        stack.up(["postgres", "kafka"])
        yield stack.settings
    finally:
        stack.down()


@pytest.fixture(scope="session")
def killed_at(empty_shop: Settings) -> float:
    """The share of three days that was played when the simulator was killed."""
    command = [sys.executable, "-m", "lockstep.cli", "simulate"]
    # Slow enough to be killed in the middle, fast enough to get there in seconds.
    options = ["--days", "3", "--poisoned", "0.01", "--speed", "20000"]
    child = subprocess.Popen([*command, *options], env=os.environ | environment(empty_shop), stdout=subprocess.DEVNULL)
    patiently = Retrying(
        stop=stop_after_delay(60), wait=wait_fixed(0.05), retry=retry_if_result(lambda share: share < 0.3)
    )
    try:
        return patiently(share_played, empty_shop)
    finally:
        child.kill()
        child.wait()


@pytest.fixture(scope="session")
def second(empty_shop: Settings, killed_at: float) -> Played:
    """What the second run did, to the end, with librdkafka."""
    return list(play(empty_shop, {}, BulkSender))[-1]


@pytest.fixture(scope="session")
def shop(empty_shop: Settings, second: Played) -> Settings:
    """Where the shop is, once it has been played to the end."""
    return empty_shop


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
