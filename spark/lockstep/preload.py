"""Modules that tasks need, imported once in the scheduler. Its tasks are forks of it, and import them no more."""

from importlib import import_module

# The tasks, and what they import inside of functions because it is slow.
MODULES = (
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.functions",
    "lockstep.tasks",
    "lockstep.marts_tasks",
    "lockstep.replay_tasks",
    "lockstep.erase_tasks",
    "dbt.cli.main",
    "dbt.adapters.spark",
    "lockstep.quality.engine",
)


def everything() -> None:
    """Import the modules. It takes about ten seconds and 0.3 GB, and starts no client and no thread."""
    for name in MODULES:
        import_module(name)
