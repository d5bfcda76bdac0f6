"""The one Spark Connect server: its configuration, its process, and its health check."""

import sys
from importlib.metadata import version
from pathlib import Path
from urllib.parse import urlsplit

import javaproperties

from lockstep.resources import resource
from lockstep.session import open_session
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import jars, lease, net
from lockstep.stack.errors import Unhealthy
from lockstep.stack.java import COMPILERS, SPARK_OPENS, find_java
from lockstep.stack.services import Launch, Service, run_dir

_INFRA = resource("infra") / "spark"
LOGGING = f"-Dlog4j2.configurationFile={_INFRA / 'log4j2.properties'}"


def network(settings: Settings) -> dict[str, str]:
    """Spark's variable that keeps a process on the loopback. Without it, Spark uses the machine's own address."""
    return {"SPARK_LOCAL_IP": LOOPBACK} if settings.listen == LOOPBACK else {}


def configuration(settings: Settings) -> dict[str, str]:
    """Spark's properties. ``docs/decisions/embedded-stack.md`` explains those about speed."""
    return {
        "spark.app.name": "lockstep",
        "spark.master": settings.spark_master,
        # The address where executors reach the driver. Not `listen`, which may mean all addresses.
        **({"spark.driver.host": LOOPBACK} if settings.listen == LOOPBACK else {}),
        "spark.driver.bindAddress": settings.listen,
        "spark.connect.grpc.binding.address": settings.listen,
        "spark.connect.grpc.binding.port": str(settings.spark_port),
        "spark.ui.port": str(settings.spark_ui_port),
        "spark.port.maxRetries": "0",
        "spark.ui.prometheus.enabled": "true",
        "spark.ui.retainedJobs": "200",
        "spark.ui.retainedStages": "200",
        "spark.sql.ui.retainedExecutions": "100",
        "spark.executor.memory": settings.spark_executor_memory,
        # With isolation, each new session compiles all code again and starts all Python workers again.
        "spark.sql.artifact.isolation.enabled": "false",
        "spark.local.dir": str(settings.home / "tmp" / "spark"),
        # The catalog is in memory. It is derived from the lake, and a client that finds it empty fills it.
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(settings.home / "warehouse"),
        # It is safe for one JVM on a local disk, and not for two. The lease keeps the second away.
        "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
        "spark.databricks.delta.snapshotPartitions": "2",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "2",
        # There is nothing to merge in two partitions, and Delta's statistics say in advance which side of a join is small.
        "spark.sql.adaptive.enabled": "false",
        # VACUUM lists every table with this many tasks. Spark's 10,000 are meant for object stores.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": "16",
        # Jobs are small and schemas wide: generating a projection takes longer than interpreting it. Stages are still compiled.
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.parquet.compression.codec": "zstd",
        # The jobs of all clients share the cores, so that a live query does not queue behind a backfill.
        "spark.scheduler.mode": "FAIR",
        # Not `as_uri`: Hadoop does not decode a URI, and would look for a directory named `my%20work`.
        "spark.scheduler.allocation.file": f"file://{_INFRA / 'fairscheduler.xml'}",
        # Each read of a range has its own consumers, which are not used again, but hold the records that they fetched in advance.
        "spark.kafka.consumer.cache.timeout": "30s",
        "spark.kafka.consumer.cache.evictorThreadRunInterval": "10s",
        "spark.kafka.consumer.fetchedData.cache.timeout": "30s",
        "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "10s",
        "spark.sql.streaming.metricsEnabled": "true",
        "spark.sql.streaming.minBatchesToRetain": "100",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
        "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
        "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "256",
    }


def prepare(settings: Settings) -> None:
    """Fetch the jars, and write the properties to a file that a person can read."""
    jars.fetch(settings)
    for directory in ("run", "warehouse", "tmp/spark", "tmp/java"):
        (settings.home / directory).mkdir(parents=True, exist_ok=True)
    _properties(settings).write_text(javaproperties.dumps(configuration(settings), timestamp=False))


def launch(settings: Settings) -> Launch:
    """The process of the server: its JVM, which inherits the lake's lease."""
    lease_descriptor = lease.take(settings)
    prepare(settings)
    java = find_java()
    home = jars.spark_home()
    ours = jars.classpath(settings, "spark")
    argv = [str(java.executable), f"-Xmx{settings.spark_memory}", "-XX:+UseParallelGC", *COMPILERS, *SPARK_OPENS]
    argv += ["-Duser.timezone=UTC", f"-Djava.io.tmpdir={settings.home / 'tmp' / 'java'}"]
    argv += [LOGGING]
    argv += ["-cp", ":".join(map(str, [f"{home}/jars/*", *ours])), "org.apache.spark.deploy.SparkSubmit"]
    argv += ["--properties-file", str(_properties(settings))]
    if not settings.spark_master.startswith("local"):
        argv += ["--jars", ",".join(map(str, ours))]
    argv += [str(_INFRA / "connect_server.py")]
    env = {
        # Without it, Python workers run another Python, or do not start.
        "PYSPARK_PYTHON": sys.executable,
        # Python workers look there for a PySpark in a zip. A zip has no bytecode, so each worker would compile PySpark again.
        "SPARK_HOME": "",
        "JAVA_HOME": str(java.home),
        # glibc gives each thread a memory arena of its own, and seldom returns memory to the system.
        "MALLOC_ARENA_MAX": "2",
    }
    return Launch(
        argv, env | network(settings), settings.home, keep_open=() if lease_descriptor is None else (lease_descriptor,)
    )


def check(settings: Settings) -> str:
    """Run a query through Spark Connect, as any client would."""
    address = urlsplit(settings.spark_remote)
    net.reach(address.hostname or LOOPBACK, address.port or settings.spark_port)
    from grpc import RpcError
    from pyspark.errors import PySparkException

    try:
        spark = open_session(f"{settings.spark_remote}/;user_id=health")
        try:
            rows = spark.sql("SELECT 1 AS one").collect()
        finally:
            spark.stop()
    except (RpcError, PySparkException) as error:
        raise Unhealthy(f"a query through {settings.spark_remote} failed: {error}") from error
    if rows[0]["one"] != 1:
        raise Unhealthy(f"SELECT 1 through {settings.spark_remote} returned {rows}")
    return f"Spark {version('pyspark')} answers at {settings.spark_remote}"


def _properties(settings: Settings) -> Path:
    return run_dir(settings) / "spark.properties"


def external(settings: Settings) -> bool:
    """Whether the settings name another Spark Connect server than the embedded one."""
    return settings.spark_remote != f"sc://{LOOPBACK}:{settings.spark_port}"


SERVICE = Service(
    name="spark",
    external=external,
    check=check,
    launch=launch,
    prepare=prepare,
    ports=("spark_port", "spark_ui_port"),
    megabytes=2900,
)
