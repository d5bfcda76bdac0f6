"""Settings that all DAGs share: owner, retries, pools, and the name of the asset that starts the next DAG.

These are plain values, so that a DAG file imports nothing heavy.
"""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

OWNER = "lockstep"
# Most failures are a service that restarts, which takes seconds. Airflow's default is five minutes.
RETRY_DELAY = timedelta(seconds=5)
# A long run may meet several restarts: where something was killed every four minutes, three were not enough for housekeeping.
RETRIES = 5
# Each retry waits twice as long as the one before it, up to this.
MAX_RETRY_DELAY = timedelta(minutes=5)

LIVE_POOL = "live_ingest"
BACKGROUND_POOL = "background"
BACKFILL_POOL = "backfill"

# What is short is the cores, which Spark's scheduler pools do not share out, so Airflow limits how many tasks run at once. Two
# backfills fit on two cores. The live pool has room for all of its DAGs together, whose runs have one task at a time, or two
# (ingest), and for an action that a person asks for. Where many rows come in, the marts and the comparison take minutes, and
# each row is older if both are at work beside ingest and refine.
POOLS: dict[str, tuple[int, str]] = {
    LIVE_POOL: (5, "ingest, refine, and what a person asks for: always admitted"),
    BACKGROUND_POOL: (1, "marts and reconcile, for which no rows wait: one after the other"),
    BACKFILL_POOL: (2, "days that are rolled up again, and maintenance: leave room for the live pool"),
}
# The executor has room for all pools: with less, tasks of one pool would wait for those of another.
PARALLELISM = sum(slots for slots, _ in POOLS.values())

# A task that hangs is ended and named. The longest known run of a backfill takes hours, any other some minutes.
EXECUTION_TIMEOUT = {
    LIVE_POOL: timedelta(hours=1),
    BACKGROUND_POOL: timedelta(hours=1),
    BACKFILL_POOL: timedelta(hours=12),
}

BRONZE = "lockstep://bronze"


def defaults(pool: str) -> dict[str, Any]:
    """Default arguments of a DAG's tasks. Those of the backfill pool have a lower priority."""
    return {
        "owner": OWNER,
        "retries": RETRIES,
        "retry_delay": RETRY_DELAY,
        "retry_exponential_backoff": 2.0,
        "max_retry_delay": MAX_RETRY_DELAY,
        "execution_timeout": EXECUTION_TIMEOUT[pool],
        "pool": pool,
        "priority_weight": 1 if pool == BACKFILL_POOL else 100,
        "weight_rule": "absolute",
    }


def triggered_by(dag_run: Any) -> str:
    """Who started the DAG run, as far as Airflow knows."""
    return getattr(dag_run, "triggering_user_name", None) or "airflow"


def responded_by(answered: Mapping[str, Any]) -> str:
    """Who gave the answer that a human-in-the-loop operator returns, as far as Airflow knows."""
    return (answered.get("responded_by_user") or {}).get("name") or "airflow"
