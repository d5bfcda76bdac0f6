"""What all DAGs share: owner, retries, pools and the names of the assets that start one DAG after another.

Plain values, so that a DAG file imports nothing heavy.
"""

from datetime import timedelta
from typing import Any

OWNER = "lockstep"
RETRY_DELAY = timedelta(seconds=5)

LIVE_POOL = "live_ingest"
BACKFILL_POOL = "backfill"

# A Spark Connect client cannot choose one of Spark's own pools, so the limit is on what Airflow admits.
POOLS: dict[str, tuple[int, str]] = {
    LIVE_POOL: (4, "ingest, refine and reconcile: always admitted"),
    BACKFILL_POOL: (2, "days that are rolled up again, and maintenance: leave room for the live pool"),
}

BRONZE = "lockstep://bronze"
GOLD = "lockstep://gold"


def defaults(pool: str) -> dict[str, Any]:
    """Default arguments of a DAG's tasks; those of the live pool go first."""
    return {
        "owner": OWNER,
        "retries": 3,
        "retry_delay": RETRY_DELAY,
        "pool": pool,
        "priority_weight": 100 if pool == LIVE_POOL else 1,
        "weight_rule": "absolute",
    }
