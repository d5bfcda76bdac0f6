from pathlib import Path

from pyspark.sql import functions as F


def test_a_python_worker_imports_pyspark_with_its_bytecode(spark):
    @F.udf("boolean")
    def has_bytecode(_):
        import pyspark

        return Path(pyspark.__cached__).is_file()

    assert spark.range(1).select(has_bytecode("id")).first()[0], "from a zip, each worker compiles it anew"
