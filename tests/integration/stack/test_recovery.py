"""A stack of its own: what is killed comes back, and a second server is kept away."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tests.integration.crash.scenarios import new_scenario
from tests.support.ports import SHORT_LIVED, started

from lockstep.kafka_clients import confluent_config
from lockstep.settings import Settings
from lockstep.stack import broker, launch, net, postgres
from lockstep.stack.errors import Unhealthy
from lockstep.stack.parts import environment
from lockstep.stack.stack import Stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """One that may be killed."""
    with started(tmp_path_factory.mktemp("home"), java=SHORT_LIVED) as own:
        yield own


@pytest.mark.timeout(1800)
def test_nothing_is_lost_or_doubled_by_a_server_killed_at_one_point_after_another(stack: Stack, tmp_path: Path) -> None:
    """Together, because each start of a server takes its time; the long run takes each by itself, and OPTIMIZE too (P9)."""
    with new_scenario(stack, tmp_path / "scenario") as scenario:
        scenario.prepared()
        scenario.server_dies_with_rows_staged(nth=1)  # P2
        scenario.server_dies_in_a_log_checkpoint(nth=1)  # P8
        scenario.server_dies_while_vacuuming(nth=1)  # P9
        scenario.server_dies_under_a_live_query("P6", nth=2)
        scenario.server_dies_under_a_live_query("P7", nth=2)
        scenario.recovers()


@pytest.mark.parametrize("part", ["postgres", "kafka"])
def test_a_part_that_is_killed_comes_back_with_what_it_had(stack: Stack, part: str) -> None:
    """As the Spark server does in the test before."""
    settings = stack.settings
    with postgres.connected(settings, "lockstep") as database, database.cursor() as cursor:
        cursor.execute("CREATE TABLE IF NOT EXISTS outlives (answer INT)")
    admin = AdminClient(confluent_config(settings))
    if "outlives" not in topics(settings):
        admin.create_topics([NewTopic("outlives", 1)])["outlives"].result(30)

    killed = psutil.Process(stack.pid(part))
    os.kill(killed.pid, signal.SIGKILL)
    killed.wait(30)
    health = stack.wait_healthy(part)

    assert health.pid != killed.pid
    with postgres.connected(settings, "lockstep") as database, database.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM outlives")
        assert cursor.fetchone() == (0,)
    assert "outlives" in topics(settings)


def topics(settings: Settings) -> set[str]:
    return set(AdminClient(confluent_config(settings)).list_topics(timeout=30).topics)


def test_what_a_killed_part_has_left_behind_is_ended_before_it_starts_again(
    monkeypatch: pytest.MonkeyPatch, sleeper: Callable[[str, str], "subprocess.Popen[bytes]"]
) -> None:
    monkeypatch.setenv("SUPERVISOR_SERVER_URL", "unix:///mine")
    monkeypatch.setenv("SUPERVISOR_PROCESS_NAME", "airflow-scheduler")
    left = sleeper("unix:///mine", "airflow-scheduler")
    others = [sleeper("unix:///mine", "spark"), sleeper("unix:///another", "airflow-scheduler")]
    launch.end_remains("spark")
    assert left.poll() is None, "this process is not that part"
    launch.end_remains("airflow-scheduler")
    assert left.wait(10) == -signal.SIGKILL
    assert [other.poll() for other in others] == [None, None]


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


def test_a_broker_that_advertises_an_address_nobody_reaches_is_told(stack: Stack, tmp_path: Path) -> None:
    """A broker of its own, healthy in itself, whose advertised port leads nowhere."""
    jars = stack.settings.cache
    settings = Settings(
        home=tmp_path / "home", cache=jars, kafka_port=net.free_port(), kafka_controller_port=net.free_port()
    )
    broker.prepare(settings)
    file = settings.home / "run" / "kafka.properties"
    advertised = f"advertised.listeners=PLAINTEXT://127.0.0.1:{settings.kafka_port}"
    assert advertised in file.read_text()
    file.write_text(file.read_text().replace(advertised, "advertised.listeners=PLAINTEXT://127.0.0.1:1"))
    log = tmp_path / "kafka.log"
    with log.open("w") as output, subprocess.Popen(broker.command(settings), stdout=output, stderr=output) as running:
        try:
            wait_for(settings)
            with pytest.raises(Unhealthy, match=r"broker 1 advertises 127\.0\.0\.1:1, which cannot be reached"):
                broker.check(settings)
        finally:
            running.kill()


def wait_for(settings: Settings) -> None:
    """Wait until a broker answers, wherever it says that it is."""
    from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

    attempts = Retrying(stop=stop_after_delay(120), wait=wait_fixed(0.5), retry=retry_if_exception_type(Unhealthy))
    attempts(broker.advertised, settings)
