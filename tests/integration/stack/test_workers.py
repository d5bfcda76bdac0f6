"""How Python workers of the Spark server start."""

from pathlib import Path

from pyspark.sql import functions as F


def test_a_python_worker_imports_pyspark_with_its_bytecode(spark):
    @F.udf("boolean")
    def has_bytecode(_):
        import pyspark

        return Path(pyspark.__cached__).is_file()

    assert spark.range(1).select(has_bytecode("id")).first()[0], "from a zip, each worker compiles it anew"


def test_a_python_worker_starts_with_what_state_machines_need(spark):
    @F.udf("boolean")
    def has_it(_):
        import sys

        return {"pandas", "lockstep.live.machine", "lockstep.batch.compute"} <= sys.modules.keys()

    assert spark.range(1).select(has_it("id")).first()[0], "each worker imports it anew"
