"""A killed service starts again, and a second server is refused."""

import json
import os
import signal
import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path
from typing import Any

import javaproperties
import psutil
import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from psycopg2 import sql
from tests.integration.crash.scenarios import new_scenario
from tests.support.alone import alone
from tests.support.broken_log import cut_log
from tests.support.ports import free_ports
from tests.support.records import event_record
from tests.support.shop import Shop
from tests.support.slow import slow

from lockstep import lake, ledger
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition.tables import bronze_of, gold_of
from lockstep.errors import DataLoss
from lockstep.ingest.bronze import behind, ingest
from lockstep.ingest.truncation import accept_truncation
from lockstep.kafka_clients import confluent_config, ensure_topics
from lockstep.service.log_watch import LogWatch
from lockstep.settings import Settings
from lockstep.stack import broker, postgres
from lockstep.stack.errors import Unhealthy
from lockstep.stack.services import environment
from lockstep.stack.stack import Stack


@pytest.mark.slow
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
    began = psutil.Process(stack.pid("spark")).create_time()
    left = [path.name for path in (stack.settings.home / "tmp").glob("*/*") if path.stat().st_ctime < began]
    assert left == [], "the killed servers have left files on the disk"


@pytest.mark.parametrize("service", [slow("postgres"), "kafka"])
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


@pytest.mark.parametrize("lost", [slow("since the copy"), "all of it"])
def test_the_flow_goes_on_from_its_tables_where_the_control_database_is_an_older_copy_or_gone(
    stack: Stack, lost: str
) -> None:
    def viewed(number: int, second: float) -> Any:
        return event_record("page_views", number, second, user_id="u", page="/")

    settings, database = stack.settings, sql.Identifier("lockstep")
    copy = sql.Identifier(f"copy_{uuid.uuid4().hex[:8]}")
    with (
        alone(settings, "page_views_per_minute") as one,
        postgres.connected(settings, "postgres") as server,
        server.cursor() as cursor,
    ):
        one.feed(viewed(0, 0), viewed(1, 70), passed=200)
        one.take()
        cursor.execute(sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(copy, database))
        one.feed(viewed(2, 130), viewed(3, 190), passed=400)
        one.take()
        cursor.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(database))
        if lost == "since the copy":
            cursor.execute(sql.SQL("ALTER DATABASE {} RENAME TO {}").format(copy, database))
        postgres.post_start(settings)
        one.feed(viewed(4, 400), passed=700)
        rows = [(row["window_start"].minute, row["views"]) for row in one.take()]
        assert sorted(rows) == [(0, 1), (1, 1), (2, 1), (3, 1), (6, 1)]
        for table in (bronze_of(one.own["page_views"]), gold_of(one.view)):
            entries = [*ledger.entries(settings, table)]
            assert list(ledger.problems(reversed(entries))) == []
            assert [entry.seq for entry in entries] == [3, 2, 1]


@pytest.fixture
def stream(stack: Stack) -> Contract:
    contract = replace(CONTRACTS["page_views"], name="truncated", topic="truncated")
    ensure_topics(stack.settings, {"truncated": contract})
    return contract


def send(shop: Shop, partition: int, *events: str) -> None:
    """Each in a batch of its own."""
    for second, event in enumerate(events):
        shop.raw(json.dumps({"event_id": event}).encode(), second, partition=partition)
        shop.flush()


def restart(stack: Stack) -> None:
    stack.stop("kafka")
    stack.up(["kafka"])


def test_a_log_that_lost_its_end_is_noticed_even_when_it_has_grown_again_and_goes_on_by_signature(
    stack: Stack, stream: Contract
) -> None:
    settings, shop, table = stack.settings, Shop(stack.settings, stream), bronze_of(stream)
    with connect(settings, "test") as spark:
        send(shop, 0, *"abcdef")
        send(shop, 1, *"uvwxy")
        ingest(spark, settings, stream, "run")
        restart(stack)
        assert behind(settings, [stream]) == [], "a broker that was restarted has lost nothing"
        send(shop, 0, *"ghij")
        assert ingest(spark, settings, stream, "run").rows == 4

        watch = LogWatch(settings, [stream])
        watch.look()
        assert watch.changed == {}
        stack.stop("kafka")
        cut_log(settings, stream.topic, 0, 7)
        cut_log(settings, stream.topic, 1, 3)
        stack.up(["kafka"])
        send(shop, 0, *"HIJKL")
        assert behind(settings, [stream]) == [stream]
        with pytest.raises(DataLoss, match=r"truncated-0: the broker lost offsets \[7, 10\).*records at \[7, 12\)"):
            ingest(spark, settings, stream, "run")
        watch.look()
        assert "the broker lost offsets [7, 10)" in str(watch.changed[stream.topic]), "and live queries stop"

        accepted = accept_truncation(settings, stream, by="an operator", reason="a power cut")
        lost = [(r.partition, r.start, r.end) for r in accepted.entry.lost]
        assert (lost, accepted.produced_again) == ([(0, 7, 10), (1, 3, 5)], 3)
        assert accept_truncation(settings, stream, by="an operator", reason="again") is None
        send(shop, 1, "z")
        assert ingest(spark, settings, stream, "run").rows == 6
        rows = lake.read(spark, settings, table).collect()
    events = sorted(json.loads(row["value"])["event_id"] for row in rows)
    assert events == sorted("abcdefghij" + "HIJKL" + "uvwxy" + "z")
    assert len({(row["partition"], row["offset"]) for row in rows}) == len(rows)
    assert list(ledger.problems(reversed(list(ledger.entries(settings, table))))) == []
    assert behind(settings, [stream]) == []
    watch.look()
    assert watch.changed == {}


def topics(settings: Settings) -> set[str]:
    return set(AdminClient(confluent_config(settings)).list_topics(timeout=30).topics)


def test_a_second_spark_server_on_the_lake_is_refused_by_name(stack: Stack, tmp_path: Path) -> None:
    other = Settings(home=tmp_path / "other", lake=stack.settings.lake, spark_port=free_ports(1)[0])
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
    jars, (port, controller) = stack.settings.cache, free_ports(2)
    settings = Settings(home=tmp_path / "home", cache=jars, kafka_port=port, kafka_controller_port=controller)
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
