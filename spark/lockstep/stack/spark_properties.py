"""The properties of the Spark Connect server."""

from lockstep.checkpoints.problems import RETAINED
from lockstep.errors import LockstepError
from lockstep.properties import read
from lockstep.resources import resource
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import lease

_SCHEDULER = resource("infra") / "spark" / "fairscheduler.xml"
# On so few cores, a job has few partitions.
_FEW_CORES = 4
# What decides each of these instead.
_REFUSED = {
    "spark.master": "LOCKSTEP_SPARK_MASTER",
    "spark.driver.memory": "LOCKSTEP_SPARK_MEMORY",
    "spark.executor.memory": "LOCKSTEP_SPARK_EXECUTOR_MEMORY",
    "spark.connect.grpc.binding.address": "LOCKSTEP_LISTEN",
    "spark.connect.grpc.binding.port": "LOCKSTEP_SPARK_PORT",
    "spark.ui.port": "LOCKSTEP_SPARK_UI_PORT",
    "spark.local.dir": "LOCKSTEP_HOME",
    "spark.sql.warehouse.dir": "LOCKSTEP_HOME",
    "spark.sql.session.timeZone": "nothing: all times are in UTC",
    "spark.sql.extensions": "nothing: the tables are Delta's",
    "spark.sql.catalog.spark_catalog": "nothing: the tables are Delta's",
    "spark.sql.streaming.stateStore.providerClass": "nothing: savepoints and verification read RocksDB's files",
}


class SettingRefused(LockstepError):
    """A Spark property that Lockstep decides itself."""


def of(settings: Settings) -> dict[str, str]:
    """Spark's properties: Lockstep's, by the number of cores, and over them those of ``LOCKSTEP_SPARK_CONFIG``.

    Raises:
        SettingRefused: the file cannot be read, or sets what a setting of Lockstep or its promises decide.
    """
    return _always(settings) | _by_cores(settings.cores) | _logged(settings) | _own(settings)


def event_log(settings: Settings) -> str:
    """The directory of the event log: in the lake, which every machine reaches."""
    return f"{settings.lake.rstrip('/')}/_events"


def _always(settings: Settings) -> dict[str, str]:
    """What does not depend on size. ``docs/decisions/embedded-stack.md`` explains those about speed."""
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
        # The UI keeps the plan of each query, and of each micro-batch, as text. The formatted one costs many times more.
        "spark.sql.ui.explainMode": "simple",
        # Delta keeps two plans of each table that was read in the last hour, about a megabyte, and by default of 10,000 tables.
        "spark.databricks.delta.delta.log.cacheSize": "200",
        "spark.executor.memory": settings.spark_executor_memory,
        # Spark's UI has no login, and shows each plan as text, with the options of Kafka's reader: hide how it logs in.
        "spark.redaction.string.regex": r'kafka\.(?:sasl|ssl)\.[^"]*"\s*value:\s*"(?:[^"\\]|\\.)*"',
        # With isolation, each new session compiles all code again and starts all Python workers again.
        "spark.sql.artifact.isolation.enabled": "false",
        "spark.python.daemon.module": "lockstep.python_daemon",
        # By default, Spark gives some Python workers a variable, and others, those of stateful operators, not. It has one daemon
        # for each environment.
        "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
        "spark.local.dir": str(settings.home / "tmp" / "spark"),
        # The catalog is in memory. It is derived from the lake, and a client that finds it empty fills it.
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.warehouse.dir": str(settings.home / "warehouse"),
        # It is safe for one JVM on a local disk, and not for two. The lease keeps the second away.
        "spark.delta.logStore.file.impl": "io.delta.storage.LocalLogStore",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.parquet.compression.codec": "zstd",
        # Spark writes a checksum for each page, and by default looks at none.
        "spark.hadoop.parquet.page.verify-checksum.enabled": "true",
        # The jobs of all clients share the cores, so that a live query does not queue behind a backfill.
        "spark.scheduler.mode": "FAIR",
        # Not `as_uri`: Hadoop does not decode a URI, and would look for a directory named `my%20work`.
        "spark.scheduler.allocation.file": f"file://{_SCHEDULER}",
        # Each read of a range has its own consumers, which are not used again, but hold the records that they fetched in advance.
        "spark.kafka.consumer.cache.timeout": "30s",
        "spark.kafka.consumer.cache.evictorThreadRunInterval": "10s",
        "spark.kafka.consumer.fetchedData.cache.timeout": "30s",
        "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "10s",
        "spark.sql.streaming.metricsEnabled": "true",
        "spark.sql.streaming.minBatchesToRetain": str(RETAINED),
        # All reports since the last publication of the progress, 20 s before: a batch begins each second at most.
        "spark.sql.streaming.numRecentProgressUpdates": "30",
        **_local_disk_without_forks(settings),
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
        "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows": "false",
        "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    }


def _local_disk_without_forks(settings: Settings) -> dict[str, str]:
    """Work on a lake on a local disk without a process for each file. Each one is a fork of the server, which is large.

    Hadoop runs ``chmod`` for each file that it writes, and its newer interface, Spark's default for checkpoints, ``readlink``
    twice for each file that it renames: with all views on, that is 130 processes a second, and a fifth of two cores. With either
    of the interfaces, a rename replaces a file at once.
    """
    if lease.lease_file(settings) is None:
        return {}
    managers = "org.apache.spark.sql.execution.streaming.checkpointing"
    properties = {"spark.sql.streaming.checkpointFileManagerClass": f"{managers}.FileSystemBasedCheckpointFileManager"}
    if settings.spark_master.startswith("local"):
        # The executors of a cluster know the class only once they have fetched its jar, and read files before.
        properties["spark.hadoop.fs.file.impl"] = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
    return properties


def _by_cores(cores: int) -> dict[str, str]:
    """What depends on the number of cores on which jobs run."""
    few = cores <= _FEW_CORES
    return {
        "spark.sql.shuffle.partitions": str(cores),
        "spark.databricks.delta.snapshotPartitions": str(cores),
        # For all state of an executor: half of it for what is not in files yet, half for the files' blocks.
        "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": str(48 * cores),
        # In a few partitions there is nothing to merge, and Delta's statistics say in advance which side of a join is small.
        "spark.sql.adaptive.enabled": "false" if few else "true",
        # On a small machine jobs are small, and schemas are wide: generating code takes longer than interpreting expressions,
        # also for 90,000 rows at once. Spark then compiles no stages either.
        "spark.sql.codegen.factoryMode": "NO_CODEGEN" if few else "FALLBACK",
        # Spark lets Python workers that wait take turns, so each that was ever needed stays: 100 MB. Others start in a moment.
        "spark.python.factory.idleWorkerMaxPoolSize": str(cores),
        # VACUUM lists every table with this many tasks. Spark's 10,000 are meant for object stores.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(8 * cores),
    }


def _logged(settings: Settings) -> dict[str, str]:
    """The event log, in files of 128 MB before compression: one file could not be compacted while it is written."""
    if not settings.event_log:
        return {}
    return {
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": event_log(settings),
        "spark.eventLog.rolling.enabled": "true",
        "spark.eventLog.compress": "true",
    }


def _own(settings: Settings) -> dict[str, str]:
    """The properties of the file that the settings name."""
    if settings.spark_config is None:
        return {}
    own = read(settings.spark_config, "LOCKSTEP_SPARK_CONFIG")
    refused = [f"{name} (what decides it: {_REFUSED[name]})" for name in sorted(own.keys() & _REFUSED.keys())]
    if refused:
        raise SettingRefused(f"{settings.spark_config}: remove {'; '.join(refused)}.")
    return own
