"""A backlog drains in bounded steps, and the platform does not grow with it."""

import os
import uuid
from dataclasses import replace

import psutil
import pytest
from tests.shop import Shop

from lockstep.contracts import CONTRACTS
from lockstep.ingest import ledger
from lockstep.ingest.bronze import ingest, table_of
from lockstep.kafka import ensure_topics
from lockstep.refine.silver import refine
from lockstep.session import connect

STEPS = int(os.environ.get("LOCKSTEP_SOAK_STEPS", "30"))
STEP = 50_000
WARM = STEPS // 3


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
    used = []
    with connect(bounded, "soak") as spark:
        for _ in range(STEPS):
            assert ingest(spark, bounded, stream, "soak").rows == STEP
            assert refine(spark, bounded, stream, "soak").rows == STEP
            used.append(psutil.Process(stack.pid("spark")).memory_info().rss >> 20)
    report(f"| | | nothing: a backlog of {STEPS * STEP:,} in {STEPS} steps | | {STEPS * STEP} | server {used} MB |")
    assert ledger.latest(bounded, table_of(stream)).seq == STEPS
    assert max(used[WARM:]) <= 1.1 * max(used[:WARM]), used
