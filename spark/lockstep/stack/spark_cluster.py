"""A Spark standalone cluster: one master, and as many workers as are started.

`lockstep up` does not start them: the server of the embedded stack runs its jobs itself (``local[n]``). With
``LOCKSTEP_SPARK_MASTER`` set to ``spark://host:port``, they become the master at that address and workers of it.
"""

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx

from lockstep import atomic_files
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import jars
from lockstep.stack.errors import StackError, Unhealthy
from lockstep.stack.java import SPARK_OPENS, Java, find_java
from lockstep.stack.services import Launch, Service
from lockstep.stack.spark_server import LOGGING, network

# Spark starts every executor's JVM with this module, and a trimmed JRE does not start with it.
_MODULE = "jdk.incubator.vector"


def master_address(settings: Settings) -> tuple[str, int]:
    """Host and port of the master.

    Raises:
        StackError: ``LOCKSTEP_SPARK_MASTER`` is not the address of a standalone master.
    """
    address = urlsplit(settings.spark_master)
    if address.scheme != "spark" or not address.hostname or not address.port:
        raise StackError(
            f"LOCKSTEP_SPARK_MASTER={settings.spark_master} is not the address of a standalone master.",
            "set it to spark://<host>:<port>, such as spark://127.0.0.1:7077.",
        )
    return address.hostname, address.port


def launch_master(settings: Settings) -> Launch:
    """The process of the master: its JVM, on the host and port of its address."""
    host, port = master_address(settings)
    arguments = ["--host", host, "--port", str(port), "--webui-port", str(settings.spark_master_ui_port)]
    return _launch(settings, "master.Master", arguments)


def launch_worker(settings: Settings) -> Launch:
    """The process of a worker: its JVM. It offers all cores of its machine, and the memory of one executor."""
    master_address(settings)
    work = settings.home / "tmp" / f"spark-worker-{settings.spark_worker_ui_port}"
    work.mkdir(parents=True, exist_ok=True)
    arguments = ["--webui-port", str(settings.spark_worker_ui_port), "--work-dir", str(work)]
    arguments += ["--memory", settings.spark_executor_memory, settings.spark_master]
    return _launch(settings, "worker.Worker", arguments, "-Dspark.worker.cleanup.enabled=true")


def _launch(settings: Settings, name: str, arguments: list[str], *options: str) -> Launch:
    settings.home.mkdir(parents=True, exist_ok=True)
    java, home = find_java(), jars.spark_home()
    argv = [str(java.executable), "-Xmx512m", *SPARK_OPENS, "-Duser.timezone=UTC", LOGGING, *options]
    argv += ["-cp", f"{home}/jars/*", f"org.apache.spark.deploy.{name}", *arguments]
    env = {
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "JAVA_HOME": str(executors_java(settings, java)),
        # Spark's own scripts set it. Without it, a worker looks for the jars of a source build.
        "SPARK_SCALA_VERSION": "2.13",
    }
    return Launch(argv, env | network(settings), settings.home)


def executors_java(settings: Settings, java: Java) -> Path:
    """The ``JAVA_HOME`` of the executors. For a trimmed JRE it is a wrapper that drops the option for the missing module."""
    modules = subprocess.run([java.executable, "--list-modules"], capture_output=True, text=True, check=True).stdout
    if _MODULE in modules:
        return java.home
    wrapper = settings.home / "run" / "executor-java" / "bin" / "java"
    script = (
        "#!/bin/sh\n"
        f'for each do shift; [ "$each" = --add-modules={_MODULE} ] || set -- "$@" "$each"; done\n'
        f'exec {shlex.quote(str(java.executable))} "$@"\n'
    )
    # Two workers of one home may write it at the same time.
    atomic_files.replace(wrapper, script.encode(), 0o755)
    return wrapper.parent.parent


def check_master(settings: Settings) -> str:
    """Check that the master is alive. Returns how many workers it has."""
    host, _ = master_address(settings)
    state = _json(f"http://{host}:{settings.spark_master_ui_port}/json/")
    if state["status"] != "ALIVE":
        raise Unhealthy(f"the Spark master {settings.spark_master} is {state['status']}")
    return f"Spark master {state['url']} with {state['aliveworkers']} workers"


def check_worker(settings: Settings) -> str:
    """Check that the worker of this machine is registered with the master."""
    state = _json(f"http://{LOOPBACK}:{settings.spark_worker_ui_port}/json/")
    if state["masterurl"] != settings.spark_master:
        raise Unhealthy(f"worker {state['id']} is not registered with {settings.spark_master}")
    return f"{state['id']} offers {state['cores']} cores and {state['memory']} MB to {state['masterurl']}"


def _json(url: str) -> Any:
    try:
        answer = httpx.get(url, timeout=5)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise Unhealthy(f"{url}: {error}") from error
    return answer.json()


SERVICES = (
    Service(
        name="spark-master",
        check=check_master,
        launch=launch_master,
        ports=("spark_master_ui_port",),
        megabytes=600,
    ),
    Service(
        name="spark-worker",
        check=check_worker,
        launch=launch_worker,
        needs=("spark-master",),
        ports=("spark_worker_ui_port",),
        megabytes=1800,
    ),
)
