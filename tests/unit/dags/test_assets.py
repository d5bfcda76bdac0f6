"""What Airflow is told of the tables that a task has written."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.support.paths import CHECKOUT


def test_a_task_emits_an_event_for_each_table_that_its_run_has_written_and_for_no_other(tmp_path: Path) -> None:
    env = os.environ | {"AIRFLOW_HOME": str(tmp_path), "LOCKSTEP_HOME": str(tmp_path), "PYTHONPATH": str(CHECKOUT)}
    command = [sys.executable, "-m", "tests.unit.dags.emit"]
    output = subprocess.run(command, env=env, cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout
    told = json.loads(output.partition("RESULT")[2])
    assert told == {"bronze.page_views": {"version": 1, "rows": 4, "offsets": {"page_views": {"0": [0, 4]}}}}
