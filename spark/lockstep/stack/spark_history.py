"""Spark's history server: the UI of Spark servers that have ended, out of the event log that they have written.

The log of a server that runs for weeks has no end, and Spark's driver deletes nothing. The history server does: it
compacts the older files of the log, and removes the logs of earlier servers.
"""

import javaproperties

from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import jars, net
from lockstep.stack.errors import StackError
from lockstep.stack.java import SPARK_OPENS, find_java
from lockstep.stack.services import Launch, Service, run_dir
from lockstep.stack.spark_properties import event_log
from lockstep.stack.spark_server import LOGGING, network

# About 25 MB each on disk. What is older is compacted into one file, without the jobs that have ended.
_FILES_OF_A_LOG = 10


def properties(settings: Settings) -> dict[str, str]:
    """The history server's properties.

    Raises:
        StackError: no event log is kept.
    """
    if not settings.event_log:
        raise StackError(
            "The history server has nothing to show: no event log is kept.",
            "set LOCKSTEP_EVENT_LOG=true, and start the Spark server again: `lockstep down spark`, `lockstep up`.",
        )
    return {
        "spark.history.fs.logDirectory": event_log(settings),
        "spark.history.ui.port": str(settings.history_port),
        "spark.port.maxRetries": "0",
        "spark.history.fs.eventLog.rolling.maxFilesToRetain": str(_FILES_OF_A_LOG),
        "spark.history.fs.cleaner.enabled": "true",
        "spark.history.fs.cleaner.maxAge": f"{settings.retain_hours}h",
    }


def launch(settings: Settings) -> Launch:
    """The process of the history server: its JVM."""
    file = run_dir(settings) / "spark-history.properties"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(javaproperties.dumps(properties(settings), timestamp=False))
    java = find_java()
    argv = [str(java.executable), "-Xmx1g", *SPARK_OPENS, "-Duser.timezone=UTC", LOGGING]
    argv += ["-cp", f"{jars.spark_home()}/jars/*", "org.apache.spark.deploy.history.HistoryServer"]
    return Launch([*argv, "--properties-file", str(file)], network(settings), settings.home)


def check(settings: Settings) -> str:
    """Ask the history server which applications it knows."""
    url = f"http://{LOOPBACK}:{settings.history_port}"
    answer = net.ask(f"{url}/api/v1/applications", f"the history server at {url}")
    return f"event logs of {len(answer.json())} servers at {url}"


SERVICE = Service(
    name="spark-history",
    check=check,
    launch=launch,
    needs=("spark",),
    ports=("history_port",),
    megabytes=1200,
    on_demand=True,
)
