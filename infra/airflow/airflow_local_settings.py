"""Read by every Airflow process that has this folder on its PYTHONPATH; only the scheduler does anything here.

Its tasks are forks of it: what it has imported before, no task imports again. Without this, half of the time of a short
task goes into importing dbt, Great Expectations and the Spark client.
"""

import sys

if "scheduler" in sys.argv:
    from lockstep import preload

    preload.everything()
