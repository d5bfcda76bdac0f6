"""The one Spark Connect server: its process, and its health check."""

import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import javaproperties

from lockstep import lake
from lockstep.resources import resource
from lockstep.session import open_session, remote
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import jars, lease, net, spark_properties
from lockstep.stack.errors import Unhealthy
from lockstep.stack.java import SPARK_OPTIONS, find_java
from lockstep.stack.services import Launch, Service, run_dir

_INFRA = resource("infra") / "spark"
LOGGING = f"-Dlog4j2.configurationFile={_INFRA / 'log4j2.properties'}"


def network(settings: Settings) -> dict[str, str]:
    """Spark's variable that keeps a process on the loopback. Without it, Spark uses the machine's own address."""
    return {"SPARK_LOCAL_IP": LOOPBACK} if settings.listen == LOOPBACK else {}


def prepare(settings: Settings) -> None:
    """Fetch the jars, write the properties to a file that a person can read, and the script that starts Python workers."""
    jars.fetch(settings)
    for directory in (run_dir(settings), settings.home / "warehouse", *_scratch(settings)):
        directory.mkdir(parents=True, exist_ok=True)
    if not urlsplit(settings.lake).scheme:
        for layer in lake.LAYERS:
            # The Thrift server's sandbox allows directories, and those only that exist when it starts.
            (Path(settings.lake) / layer).mkdir(parents=True, exist_ok=True)
        if settings.event_log:
            # Spark does not make it.
            Path(spark_properties.event_log(settings)).mkdir(parents=True, exist_ok=True)
    properties = javaproperties.dumps(spark_properties.of(settings), timestamp=False)
    _properties(settings).write_text(properties)
    python = shlex.join([sys.executable, "-IS", str(_INFRA / "connect_first.py"), sys.executable])
    _python(settings).write_text(f'#!/bin/sh\nexec {python} "$@"\n')
    _python(settings).chmod(0o700)


def launch(settings: Settings) -> Launch:
    """The process of the server: its JVM, which inherits the lake's lease."""
    lease_descriptor = lease.take(settings)
    # A server that was killed leaves its blocks and its copies of the state behind: a hundred megabytes each time.
    for directory in _scratch(settings):
        shutil.rmtree(directory, ignore_errors=True)
    prepare(settings)
    argv = submit(settings, settings.spark_memory, _scratch(settings)[1], _properties(settings))
    if not settings.spark_master.startswith("local"):
        argv += ["--jars", ",".join(map(str, jars.classpath(settings, "spark")))]
    argv += [str(_INFRA / "connect_server.py")]
    env = {
        # Without it, Python workers run another Python, or do not start. The other machines of a cluster have no such script.
        "PYSPARK_PYTHON": str(_python(settings)) if settings.spark_master.startswith("local") else sys.executable,
        # Python workers look there for a PySpark in a zip. A zip has no bytecode, so each worker would compile PySpark again.
        "SPARK_HOME": "",
        "JAVA_HOME": str(find_java().home),
    }
    return Launch(
        argv, env | network(settings), settings.home, keep_open=() if lease_descriptor is None else (lease_descriptor,)
    )


def submit(settings: Settings, memory: str, scratch: Path, properties: Path) -> list[str]:
    """The beginning of a command line that runs a Spark application in a JVM of its own. What the application is, follows.

    Args:
        scratch: the JVM's temporary directory.
        properties: the file with Spark's properties.
    """
    # The directory comes first, because a file of it takes the place of one in a jar.
    parts = [_INFRA / "conf", f"{jars.spark_home()}/jars/*", *jars.classpath(settings, "spark")]
    classpath = ":".join(map(str, parts))
    argv = [str(find_java().executable), f"-Xmx{memory}", *SPARK_OPTIONS]
    argv += ["-Duser.timezone=UTC", f"-Djava.io.tmpdir={scratch}", LOGGING]
    return [*argv, "-cp", classpath, "org.apache.spark.deploy.SparkSubmit", "--properties-file", str(properties)]


def check(settings: Settings) -> str:
    """Run a query through Spark Connect, as any client would."""
    address = urlsplit(settings.spark_remote)
    net.reach(address.hostname or LOOPBACK, address.port or settings.spark_port)
    with asked(settings) as spark:
        rows = spark.sql("SELECT 1 AS one").collect()
    if rows[0]["one"] != 1:
        raise Unhealthy(f"SELECT 1 through {settings.spark_remote} returned {rows}")
    return f"Spark {version('pyspark')} answers at {settings.spark_remote}"


@contextmanager
def asked(settings: Settings) -> Iterator[Any]:
    """A session for a question that a healthy server answers at once.

    Raises:
        Unhealthy: it does not.
    """
    from grpc import RpcError
    from pyspark.errors import PySparkException
    from pyspark.sql.connect.client.retries import DefaultPolicy

    try:
        spark = open_session(remote(settings, "health"))
        # By default, PySpark tries for ten minutes, and says nothing: also where TLS does not fit.
        spark.client.set_retry_policies([DefaultPolicy(max_retries=3)])
        try:
            yield spark
        finally:
            spark.stop()
    except (RpcError, PySparkException) as error:
        raise Unhealthy(f"a query through {settings.spark_remote} failed: {error}") from error


def _scratch(settings: Settings) -> tuple[Path, Path]:
    """What only a running server needs: Spark's local directory, and the JVM's temporary one."""
    return settings.home / "tmp" / "spark", settings.home / "tmp" / "java"


def _python(settings: Settings) -> Path:
    return run_dir(settings) / "python"


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
    megabytes=2500,
)
