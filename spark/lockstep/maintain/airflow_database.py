"""Remove old runs from Airflow's own database: several DAGs run each minute, and Airflow keeps every run for ever."""

import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from lockstep.settings import Settings

# Lines of Airflow's output that show what went wrong.
_LAST_LINES = 10


class AirflowNotCleaned(LockstepError):
    """Airflow's own command has failed. The message has the end of its output."""


def clean(settings: "Settings") -> None:
    """Remove runs, with their tasks, logs, XComs and events, that are older than ``airflow_hours``. The newest of each DAG stays.

    Raises:
        AirflowNotCleaned: Airflow could not remove them.
    """
    oldest = datetime.now(UTC) - timedelta(hours=settings.airflow_hours)
    command = [sys.executable, "-m", "airflow", "db", "clean", "--yes", "--skip-archive"]
    address = settings.dsn("airflow").replace("postgresql", "postgresql+psycopg2", 1)
    done = subprocess.run(
        [*command, "--clean-before-timestamp", oldest.isoformat(timespec="seconds")],
        # Airflow takes the address of its database away from tasks.
        env=os.environ | {"AIRFLOW__DATABASE__SQL_ALCHEMY_CONN": address},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        end = "\n  ".join(done.stdout.splitlines()[-_LAST_LINES:])
        raise AirflowNotCleaned(f"`airflow db clean` ended with exit code {done.returncode}:\n  {end}")
