"""Nothing is laptop-only: the pipeline on a Spark standalone cluster, by settings alone.

Master, workers and server are started by the commands that the containers of `docker-compose.yml` run.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from tenacity import Retrying, retry_if_exception_type, retry_if_not_result, stop_after_delay, wait_fixed
from tests.support.ports import free_ports

from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import Contract
from lockstep.definition import View
from lockstep.ingest.bronze import ingest
from lockstep.refine.silver import refine
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import secrets
from lockstep.stack.errors import Unhealthy
from lockstep.stack.registry import LAUNCHABLE
from lockstep.stack.services import inherited, log_file

VIEWS_SENT = 300


def start(service: str, settings: Settings, log: Path, stopping: ExitStack) -> Callable[[], None]:
    """Start the service as its container does. Returns a function that waits until the service passes its check."""
    with log.open("wb") as output:
        command = [sys.executable, "-m", "lockstep.stack.launch", service]
        process = subprocess.Popen(command, env=inherited(settings), stdout=output, stderr=subprocess.STDOUT)
    stopping.callback(process.wait, timeout=60)
    stopping.callback(process.terminate)

    def check() -> None:
        assert process.poll() is None, f"{service} ended:\n{log.read_text()[-2000:]}"
        LAUNCHABLE[service].check(settings)

    patiently = Retrying(
        stop=stop_after_delay(150), wait=wait_fixed(0.5), retry=retry_if_exception_type(Unhealthy), reraise=True
    )
    return lambda: patiently(check)


def executors(settings: Settings) -> list[dict[str, Any]]:
    """What the server knows of its executors, the driver left out."""
    api = f"http://{LOOPBACK}:{settings.spark_ui_port}/api/v1/applications"
    application = httpx.get(api, timeout=10).json()[0]["id"]
    found = httpx.get(f"{api}/{application}/allexecutors", timeout=10).json()
    return [executor for executor in found if executor["id"] != "driver"]


@pytest.fixture
def worker_ports() -> list[int]:
    return free_ports(2)


@pytest.fixture
def cluster(settings: Settings, worker_ports: list[int], tmp_path: Path) -> Iterator[Settings]:
    """A master, two workers and a Connect server on a lake of their own; broker and PostgreSQL are the stack's."""
    master, master_ui, server, ui = free_ports(4)
    home = tmp_path / "cluster"
    own = Settings(
        _env_file=settings.secrets_file,  # type: ignore[call-arg]
        home=home,
        lake=str(home / "lake"),
        spark_master=f"spark://{LOOPBACK}:{master}",
        spark_master_ui_port=master_ui,
        spark_remote=f"sc://{LOOPBACK}:{server}",
        spark_port=server,
        spark_ui_port=ui,
        spark_memory="1g",
        spark_executor_memory="600m",
    )
    own = secrets.ensure(own)
    (own.home / "logs").mkdir(parents=True)
    with ExitStack() as stopping:
        start("spark-master", own, log_file(own, "spark-master"), stopping)()
        workers = [own.model_copy(update={"spark_worker_ui_port": port}) for port in worker_ports]
        started = [
            start("spark-worker", worker, log_file(own, f"spark-worker-{number}"), stopping)
            for number, worker in enumerate(workers)
        ]
        started.append(start("spark", own, log_file(own, "spark"), stopping))
        for wait_for in started:
            wait_for()
        both = Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.5), retry=retry_if_not_result(bool))
        both(lambda: len([executor for executor in executors(own) if executor["isActive"]]) == 2)
        yield own


# Several JVMs start from cold on the machine's few cores.
@pytest.mark.timeout(600)
def test_the_pipeline_runs_on_a_standalone_cluster_and_its_counts_add_up(
    cluster: Settings, worker_ports: list[int], stream: Contract, view: View, shop: Any
) -> None:
    # A personal column makes the workers run Python too.
    contract = replace(stream, pii=("user_id",))
    for number in range(VIEWS_SENT):
        shop.view(f"e{number}", second=number, user_id=f"u{number % 7}", page=f"/{number % 3}")
    shop.view("e5", second=5, arrives_after=1.0)
    shop.view("late", second=60, arrives_after=40.0)
    shop.raw(b"{broken", arrives_at=30)
    shop.heartbeat(600)
    shop.flush()

    with connect(cluster, "standalone") as spark:
        bronze = ingest(spark, cluster, contract, "run-1")
        silver = refine(spark, cluster, contract, "run-1")
        gold = roll_up(spark, cluster, view, "run-1")
        people = {row.user_id for row in spark.table(f"silver.{contract.name}").select("user_id").distinct().collect()}
        counted = spark.table(f"gold.{view.name}").agg({"views": "sum"}).collect()[0][0]

    assert bronze and silver and gold
    assert bronze.rows == len(shop.acknowledged) == VIEWS_SENT + 6
    assert silver.counts == {"silver": VIEWS_SENT + 1, "duplicates": 1, "quarantined": 1, "markers": 3}
    assert sum(silver.counts.values()) == bronze.rows
    assert gold.counts == {"counted": VIEWS_SENT, "ignored": 1, "side_output": 0}
    assert counted == VIEWS_SENT
    assert len(people) == 7
    assert all(re.fullmatch("[0-9a-f]{32}", person) for person in people)

    tasks: Counter[int | None] = Counter()
    for executor in executors(cluster):
        assert executor["failedTasks"] == 0
        tasks[urlsplit(executor["executorLogs"]["stderr"]).port] += executor["completedTasks"]
    assert set(tasks) == set(worker_ports)
    assert all(tasks[port] > 0 for port in worker_ports), tasks
    # The home of the cluster is its own: what ran here did not run on the stack's server.
    assert (cluster.home / "lake" / "gold" / view.name / "_delta_log").is_dir()
