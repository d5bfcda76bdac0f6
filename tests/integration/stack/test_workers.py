from pyspark.sql import functions as F


def test_a_python_worker_imports_pyspark_with_its_bytecode(spark):
    @F.udf("string")
    def imported(_):
        import pyspark

        return pyspark.__cached__

    [[cached]] = spark.range(1).select(imported("id")).collect()
    assert cached is not None, "from a zip, each worker compiles it anew"
    assert cached.endswith(".pyc")
