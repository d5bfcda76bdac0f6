"""Spark Connect in an ordinary PySpark application, whose Python process then forks the sinks of the live queries.

Spark's own ``SparkConnectServer`` gives every session its own class loader, for jars that a client may add. We add none, and each
new session would compile all code again and start all Python workers again (``docs/decisions/one-warm-spark-server.md``). Spark's
Connect plugin would accept clients before there is a session to clone for them.
"""

import os
import sys
from typing import Any

from pyspark.sql import SparkSession

# PySpark sets it in the environment of a client. A client that starts the supervisor passes it on to this process.
os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
spark = SparkSession.builder.getOrCreate()
context = spark.sparkContext
jvm: Any = context._jvm
# A client may ask for a query that has stopped. Spark keeps each one for an hour, with the plans of its last micro-batch: those
# of a live service that starts again and again would fill the heap. Spark has no setting for it. The service asks each 2 s.
connect_service = jvm.java.lang.Class.forName("org.apache.spark.sql.connect.service.SparkConnectService$")
service = connect_service.getField("MODULE$").get(None)
stopped = service.streamingSessionManager()
kept_for = stopped.getClass().getDeclaredField("stoppedQueryInactivityTimeout")
kept_for.setAccessible(True)
kept_for.set(stopped, jvm.scala.concurrent.duration.Duration.apply("2 minutes"))
service.start(context._jsc.sc())
# The JVM goes on until this process ends, and this one until the JVM has ended.
os.execv(sys.executable, [sys.executable, "-m", "lockstep.sink_server"])
