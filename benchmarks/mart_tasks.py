"""What the tasks of the marts cost beside the one run of dbt: runs of the DAG `marts` on the stack that runs now.

``python benchmarks/mart_tasks.py 10``, with nothing else going on: seconds of a run and of the task that runs dbt in it, and the
CPU seconds of Airflow's processes and of all that they have started. Runs that find nothing new show the fixed cost.
"""

import statistics
import sys
import time

import psutil

from lockstep.airflow_api import connected
from lockstep.settings import load
from lockstep.stack.postgres import connected as database
from lockstep.stack.stack import Stack

_PROCESSES = ("airflow-scheduler", "airflow-triggerer", "airflow-dag-processor", "airflow-api-server")
_OF_RUN = """
SELECT extract(epoch FROM run.end_date - run.start_date), task.duration
FROM dag_run run JOIN task_instance task USING (dag_id, run_id)
WHERE dag_id = 'marts' AND task_id = 'build' AND run.end_date IS NOT NULL ORDER BY run.start_date DESC LIMIT 1
"""


def cpu(stack: Stack) -> float:
    """CPU seconds of Airflow's processes, with those of the children that have ended."""
    total = 0.0
    for name in _PROCESSES:
        parent = psutil.Process(stack.pid(name))
        for process in (parent, *parent.children(recursive=True)):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
    return total


def main(runs: int) -> None:
    """Start runs one after another, and print what they took."""
    stack = Stack(load())
    found = []
    with connected(stack.settings) as airflow:
        airflow.unpause("marts")
        for _ in range(runs):
            before, newest = cpu(stack), airflow.runs("marts", 1)[0].run_id
            airflow.trigger("marts")
            while (run := airflow.runs("marts", 1)[0]).run_id == newest or not run.ended:
                time.sleep(0.5)
            # The DAG processor still looks for callbacks.
            time.sleep(3)
            with database(stack.settings, "airflow") as connection, connection.cursor() as cursor:
                cursor.execute(_OF_RUN)
                seconds, build = map(float, cursor.fetchone() or (0, 0))
            found.append((seconds, build, cpu(stack) - before))
            print(f"run {seconds:.1f} s, build {build:.1f} s, CPU {found[-1][2]:.1f} s", flush=True)
    run, build, used = (statistics.median(of) for of in zip(*found, strict=True))
    print(f"medians: run {run:.1f} s, build {build:.1f} s, CPU {used:.1f} s")


if __name__ == "__main__":
    main(int(sys.argv[1]))
