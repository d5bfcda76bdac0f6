"""Scripts of tests/unit/dags, which load Airflow: each runs in a process of its own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.support.paths import CHECKOUT


def told_by(script: str, home: Path, *arguments: str) -> Any:
    """What a script prints as its result.

    Args:
        home: Airflow's, and the platform's.
    """
    env = os.environ | {"AIRFLOW_HOME": str(home), "LOCKSTEP_HOME": str(home), "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-m", f"tests.unit.dags.{script}", *arguments]
    output = subprocess.run(command, env=env, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    return json.loads(output.partition("RESULT")[2])
