"""What the tasks import, imported once in the process that they are forks of. No client and no thread is started."""

from importlib import import_module

MODULES = (
    "pyspark.sql.connect.session",
    "pyspark.sql.connect.functions",
    "lockstep.tasks",
    "lockstep.ingest.bronze",
    "lockstep.refine.silver",
    "lockstep.batch.rollup",
    "lockstep.reconcile.run",
    "dbt.cli.main",
    "dbt.adapters.spark",
    "lockstep.marts",
    "lockstep.quality.gate",
    "lockstep.quality.engine",
)


def everything() -> None:
    """Import what the steps import inside their functions; takes about ten seconds and 0.3 GB, shared by all forks."""
    for name in MODULES:
        import_module(name)
