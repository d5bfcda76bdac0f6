"""Spark Connect in an ordinary PySpark application, which waits until its JVM ends.

Spark's own ``SparkConnectServer`` forces a class loader of its own on every session, for jars that we never add: each new
session then compiles all code, and starts all Python workers, anew (``docs/decisions/one-warm-spark-server.md``). Its plugin
would answer clients before there is a session to clone for them.
"""

import os
import sys

from pyspark.sql import SparkSession

# PySpark leaves it in the environment of whoever has been a client, and so of the supervisor that a client starts.
os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
spark = SparkSession.builder.getOrCreate()
context = spark.sparkContext
context._jvm.org.apache.spark.sql.connect.service.SparkConnectService.start(context._jsc.sc())  # type: ignore[union-attr]
sys.stdin.read()
