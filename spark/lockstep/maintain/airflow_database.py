"""Remove old runs from Airflow's own database: several DAGs run each minute, and Airflow keeps every run for ever."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from lockstep.settings import Settings

# What grows with each run. DAGs stay, so that one that was paused is not started because it was not parsed for some time; Airflow
# itself removes triggers that nobody waits for.
TABLES = (
    "asset_event",
    "dag_run",
    "job",
    "log",
    "task_instance",
    "task_instance_history",
    "xcom",
)
# Lines of Airflow's output that show what went wrong.
_LAST_LINES = 10


class AirflowNotCleaned(LockstepError):
    """Airflow's own command has failed. The message has the end of its output."""


def clean(settings: "Settings") -> None:
    """Remove the runs, with all that belongs to them, that started more than ``airflow_hours`` ago, ended or not.

    The newest scheduled run of each DAG stays. Who has asked for a replay, and who has approved it, is in ``ops.replays``.

    Raises:
        AirflowNotCleaned: Airflow could not remove them.
    """
    oldest = datetime.now(UTC) - timedelta(hours=settings.airflow_hours)
    # Without the last one, it ends with exit code 0 whatever happens.
    flags = ("--yes", "--skip-archive", "--error-on-cleanup-failure")
    command = [sys.executable, "-m", "airflow", "db", "clean", *flags, "--tables", ",".join(TABLES)]
    address = settings.dsn("airflow").replace("postgresql", "postgresql+psycopg2", 1)
    done = subprocess.run(
        [*command, "--clean-before-timestamp", oldest.isoformat(timespec="seconds")],
        # Airflow takes the address of its database away from tasks.
        env={
            "AIRFLOW_HOME": str(settings.home / "airflow"),
            **os.environ,
            "AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": address,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        end = "\n  ".join(done.stdout.splitlines()[-_LAST_LINES:])
        raise AirflowNotCleaned(f"`airflow db clean` ended with exit code {done.returncode}:\n  {end}")
