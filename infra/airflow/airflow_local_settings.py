"""Read by every Airflow process that has this folder on its PYTHONPATH; only the scheduler and the triggerer do anything here.

The scheduler's tasks are forks of it: what it has imported before, no task imports again. Without this, half of the time of a
short task goes into importing dbt, Great Expectations and the Spark client.

The triggerer is two processes, the second a fork of the first. What there is at that moment is never looked at for garbage again:
looking writes to every page of it, so that the two would share none.
"""

import gc
import os
import sys

if "scheduler" in sys.argv:
    from lockstep import preload

    preload.everything()
elif "triggerer" in sys.argv:
    os.register_at_fork(before=gc.freeze)
