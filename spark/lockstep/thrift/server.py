"""The process of the Thrift server: Spark's own, in a sandbox.

It is a Spark server beside the pipeline's: a heavy question of a dashboard takes nothing from it but cores.
"""

import os
import shutil
import signal
import subprocess
from pathlib import Path
from urllib.parse import urlsplit

import javaproperties
import landlockpy

from lockstep import lake, processes
from lockstep.resources import resource
from lockstep.settings import Settings
from lockstep.stack import jars, spark_properties
from lockstep.stack.java import find_java
from lockstep.stack.services import run_dir
from lockstep.stack.spark_server import network, submit
from lockstep.stack.spark_thrift import scratch
from lockstep.thrift.sandbox import Sandbox, require

# Raw values of records, and what a replay has not promoted, are no tables for readers.
LAYERS = tuple(layer for layer in lake.LAYERS if layer not in ("bronze", "quarantine", "shadow"))
_MAIN = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"
# The variables that a JVM may need; it inherits no others, and so no secret.
_VARIABLES = ("PATH", "LANG", "LC_ALL", "TZ", "JDK_JAVA_OPTIONS")


def start(settings: Settings) -> "subprocess.Popen[bytes]":
    """Start the server. It ends with this process, and its output is this one's.

    Raises:
        StackError: nothing would keep it from writing to the lake.
    """
    own = scratch(settings)
    shutil.rmtree(own, ignore_errors=True)
    own.mkdir(parents=True)
    file = run_dir(settings) / "thrift.properties"
    file.write_text(javaproperties.dumps(properties(settings), timestamp=False))
    sandbox = sandbox_of(settings, file)
    supported = landlockpy.supported()

    def restrict() -> None:
        processes.signal_when_parent_ends(signal.SIGTERM)
        if supported:
            sandbox.apply()

    env = {name: os.environ[name] for name in _VARIABLES if name in os.environ}
    env |= {"HOME": str(own), "SPARK_HOME": "", "MALLOC_ARENA_MAX": "2"} | network(settings)
    # Nothing else runs in this process yet, so that a function may run between fork and exec.
    return subprocess.Popen(command(settings, file), env=env, cwd=own, preexec_fn=restrict)


def command(settings: Settings, file: Path) -> list[str]:
    """Its command line.

    Args:
        file: has its properties.
    """
    java, *options = submit(settings, settings.thrift_memory, scratch(settings), file)
    # It would write to the machine's temporary directory.
    argv = [java, "-XX:-UsePerfData", *options, "--class", _MAIN, "spark-internal"]
    hive = {"hive.server2.thrift.bind.host": settings.listen, "hive.server2.thrift.port": settings.thrift_port}
    return argv + [part for name, value in hive.items() for part in ("--hiveconf", f"{name}={value}")]


def properties(settings: Settings) -> dict[str, str]:
    """Its Spark properties: those of the pipeline's server, but for what must be its own."""
    own = scratch(settings)
    return spark_properties.of(settings.model_copy(update={"event_log": False})) | {
        "spark.app.name": "lockstep-thrift",
        "spark.master": f"local[{settings.cores}]",
        "spark.ui.enabled": "false",
        "spark.local.dir": str(own),
        "spark.sql.warehouse.dir": str(own / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        # Whoever tells it the names of the tables is a client of Spark Connect.
        "spark.plugins": "org.apache.spark.sql.connect.SparkConnectPlugin",
        "spark.connect.grpc.binding.address": settings.listen,
        "spark.connect.grpc.binding.port": str(settings.thrift_connect_port),
    }


def sandbox_of(settings: Settings, file: Path) -> Sandbox:
    """What the server may do: read the tables for readers and the programs it consists of, and nothing else.

    Of a lake that is not on a local disk, what it may do is what its credentials allow.

    Raises:
        StackError: nothing would keep it from writing to the lake.
    """
    programs = [find_java().executable.resolve().parent.parent, jars.spark_home(), jars.directory(settings)]
    programs += [resource("infra"), file]
    if urlsplit(settings.lake).scheme:
        return Sandbox(tuple(programs), scratch(settings), connects=True)
    require(Path(settings.lake))
    layers = [Path(settings.lake) / layer for layer in LAYERS]
    return Sandbox((*programs, *layers), scratch(settings), connects=False)
