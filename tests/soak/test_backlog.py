"""A backlog drains in bounded steps, and the platform does not grow with it."""

import json
import os
import time
import uuid
from dataclasses import replace
from urllib.request import urlopen

import psutil
import pytest
from tests.support.shop import Shop

from lockstep import ledger
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import bronze_of
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import ensure_topics
from lockstep.refine.silver import refine
from lockstep.settings import LOOPBACK
from lockstep.stack import spark_server

STEPS = int(os.environ.get("LOCKSTEP_SOAK_STEPS", "30"))
STEP = 50_000
# A heap fills up to its bound, whether there is a leak or not: what counts is what full collections leave, and Spark's JVM
# metrics tell it.
TOLD = "-Dspark.metrics.conf.driver.source.jvm.class=org.apache.spark.metrics.source.JvmSource"
OFTEN = "-Dspark.cleaner.periodicGC.interval=20s"


@pytest.fixture
def java():
    return f"{TOLD} {OFTEN}"


@pytest.mark.timeout(3600)
def test_memory_is_flat_however_long_the_backlog(stack, report):
    name = f"page_views_{uuid.uuid4().hex[:8]}"
    stream = replace(CONTRACTS["page_views"], name=name, topic=name)
    ensure_topics(stack.settings, {name: stream})
    shop = Shop(stack.settings, stream)
    for n in range(STEPS * STEP):
        shop.view(f"e{n}", n / 100, user_id=f"u{n % 1000}")
        if n % 10_000 == 0:
            shop.flush()
    shop.flush()
    bounded = stack.settings.model_copy(update={"max_offsets_per_run": STEP})
    used, process = [], []
    with connect(bounded, "soak") as spark:
        for done in range(1, STEPS + 1):
            assert ingest(spark, bounded, stream, "soak").rows == STEP
            assert refine(spark, bounded, stream, "soak").rows == STEP
            process.append(psutil.Process(stack.pid("spark")).memory_info().rss >> 20)
            if done % (STEPS // 3) == 0:
                used.append(_left(bounded))
    report(f"| | | nothing: a backlog of {STEPS * STEP:,} in {STEPS} steps | | {STEPS * STEP} | server {used} MB |")
    assert ledger.latest(bounded, bronze_of(stream)).seq == STEPS
    assert max(used) <= 1.1 * used[0], used
    assert max(process) <= spark_server.SERVICE.megabytes, process


def _left(settings):
    """The megabytes of which the resting Spark server lets nothing go any more: consumers stay for half a minute."""
    seen = []
    for _ in range(9):
        time.sleep(10)
        seen.append(_old_generation(settings))
    return min(seen)


def _old_generation(settings):
    """The megabytes that the last full collection has left."""
    with urlopen(f"http://{LOOPBACK}:{settings.spark_ui_port}/metrics/json/") as answer:
        gauges = json.load(answer)["gauges"]
    [used] = [gauge["value"] for name, gauge in gauges.items() if name.endswith("Old-Gen.used-after-gc")]
    return used >> 20
