"""On busy cores, Airflow gives way to live queries, and tasks for which no rows wait to all others."""

import os
import subprocess
import sys

from lockstep.settings import Settings
from lockstep.stack.registry import LAUNCHABLE

# Linux knows no more.
MOST = 19
NICENESS = "import os; print(os.nice(0))"


def said(program: str) -> int:
    """What a process of its own prints, relative to the niceness of this one."""
    printed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    return int(printed) - os.nice(0)


def test_airflows_processes_and_their_children_give_way(settings: Settings) -> None:
    airflow = [service for name, service in LAUNCHABLE.items() if name.startswith("airflow-") and service.launch]
    assert len(airflow) == 4
    for service in airflow:
        assert service.launch is not None
        launch = service.launch(settings)
        started = f"Launch([{sys.executable!r}, '-c', {NICENESS!r}], nice={launch.nice})"
        become = f"from lockstep.stack.launch import become, Launch; become({started}, {{}}, 'TERM')"
        assert said(become) == min(4, MOST - os.nice(0))


def test_a_task_for_which_no_rows_wait_gives_way_to_all_others() -> None:
    assert said(f"from lockstep.airflow_task import give_way; give_way(); {NICENESS}") == min(10, MOST - os.nice(0))
