"""On a stack of its own: a killed service starts again, and a second server is refused."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import javaproperties
import psutil
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.crash.scenarios import new_scenario
from tests.support.ports import SHORT_LIVED, started

from lockstep.kafka_clients import confluent_config
from lockstep.settings import Settings
from lockstep.stack import broker, net, postgres
from lockstep.stack.errors import Unhealthy
from lockstep.stack.services import environment
from lockstep.stack.stack import Stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack whose services may be killed."""
    with started(tmp_path_factory.mktemp("home"), java=SHORT_LIVED) as own:
        yield own


@pytest.mark.timeout(1800)
def test_nothing_is_lost_or_doubled_by_a_server_killed_at_one_point_after_another(stack: Stack, tmp_path: Path) -> None:
    """Together, because each start of a server takes its time; the long run takes each by itself."""
    with new_scenario(stack, tmp_path / "scenario") as scenario:
        scenario.prepared()
        scenario.server_dies_with_rows_staged(nth=1)  # P2
        scenario.server_dies_in_a_log_checkpoint(nth=1)  # P8
        scenario.server_dies_under_a_live_query("P6", nth=2)
        scenario.server_dies_under_a_live_query("P7", nth=2)
        scenario.server_dies_between_two_tables()  # P6 of a shared job
        scenario.recovers()


@pytest.mark.parametrize("service", ["postgres", "kafka"])
def test_a_service_that_is_killed_starts_again_with_its_data(stack: Stack, service: str) -> None:
    """The test before shows it for the Spark server."""
    settings = stack.settings
    with postgres.connected(settings, "lockstep") as database, database.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS outlives (answer INT)")
    admin = AdminClient(confluent_config(settings))
    if "outlives" not in topics(settings):
        admin.create_topics([NewTopic("outlives", 1)])["outlives"].result(30)

    killed = psutil.Process(stack.pid(service))
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait(30)
    health = stack.wait_healthy(service)

    assert health.pid != killed.pid
    with postgres.connected(settings, "lockstep") as database, database.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM outlives")
        assert cursor.fetchone() == (0,)
    assert "outlives" in topics(settings)


def topics(settings: Settings) -> set[str]:
    return set(AdminClient(confluent_config(settings)).list_topics(timeout=30).topics)


def test_a_second_spark_server_on_the_lake_is_refused_by_name(stack: Stack, tmp_path: Path) -> None:
    other = Settings(home=tmp_path / "other", lake=stack.settings.lake, spark_port=net.free_port())
    launched = subprocess.run(
        [sys.executable, "-m", "lockstep.stack.launch", "spark"],
        env=os.environ | environment(other),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert launched.returncode != 0
    assert f"(pid {stack.pid('spark')}) holds the lake {stack.settings.lake}" in launched.stderr


def test_a_broker_that_advertises_an_unreachable_address_is_unhealthy(stack: Stack, tmp_path: Path) -> None:
    """On a broker of its own, which is healthy but for the port that it advertises."""
    jars = stack.settings.cache
    settings = Settings(
        home=tmp_path / "home", cache=jars, kafka_port=net.free_port(), kafka_controller_port=net.free_port()
    )
    broker.prepare(settings)
    file = settings.home / "run" / "kafka.properties"
    properties = javaproperties.loads(file.read_text())
    assert properties["advertised.listeners"] == f"PLAINTEXT://127.0.0.1:{settings.kafka_port}"
    file.write_text(javaproperties.dumps(properties | {"advertised.listeners": "PLAINTEXT://127.0.0.1:1"}))
    log = tmp_path / "kafka.log"
    with log.open("w") as output, subprocess.Popen(broker.command(settings), stdout=output, stderr=output) as running:
        try:
            wait_for(settings)
            with pytest.raises(Unhealthy, match=r"broker 1 advertises 127\.0\.0\.1:1, which cannot be reached"):
                broker.check(settings)
        finally:
            running.kill()


def wait_for(settings: Settings) -> None:
    """Wait until a broker answers, whatever address it advertises."""
    from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

    attempts = Retrying(stop=stop_after_delay(120), wait=wait_fixed(0.5), retry=retry_if_exception_type(Unhealthy))
    attempts(broker.advertised, settings)
