"""A backfill that races with live ingest, and what must hold after it; used by the gate and by the long runs."""

import random
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from tests.support.shop import START

from lockstep.batch.rollup import rebuild, roll_up
from lockstep.catalog import connect
from lockstep.ingest.bronze import ingest
from lockstep.refine.silver import refine

HOUR = timedelta(hours=1)
PAGES = ("/", "/cart", "/search")


def race(settings, stream, view, shop, dice: random.Random, rounds: int = 3) -> Counter:
    """Send and take page views, round by round, while the hour that they lie in is rebuilt; what the views should show."""
    expected: Counter = Counter()

    def live() -> None:
        with connect(settings, "live") as spark:
            for n in range(rounds):
                for _ in range(dice.randrange(5, 50)):
                    second, page = dice.randrange(3600), dice.choice(PAGES)
                    shop.view(f"{n}-{dice.random()}", second, page=page)
                    expected[f"{START + timedelta(seconds=second - second % 60):%H:%M}", page] += 1
                shop.flush()
                ingest(spark, settings, stream, f"live-{n}")
                refine(spark, settings, stream, f"live-{n}")
                roll_up(spark, settings, view, f"live-{n}")

    def backfill() -> None:
        with connect(settings, "backfill") as spark:
            for n in range(rounds):
                rebuild(spark, settings, view, START, START + HOUR, f"backfill-{n}")

    with ThreadPoolExecutor(2) as pool:
        for running in [pool.submit(live), pool.submit(backfill)]:
            running.result()
    return expected


def shown(spark, view) -> Counter:
    """What the view shows."""
    rows = spark.table(f"gold.{view.name}").collect()
    return Counter({(f"{r['window_start']:%H:%M}", r["page"]): r["views"] for r in rows})


def doubled(spark, stream, view) -> list:
    """Offsets or keys that stand twice in any layer."""
    keys = {
        f"bronze.{stream.name}": ("partition", "offset"),
        f"silver.{stream.name}": ("event_id",),
        f"gold.{view.name}": view.key,
    }
    return [
        (table, row)
        for table, columns in keys.items()
        for row in spark.table(table).groupBy(*columns).count().where("count > 1").collect()
    ]
