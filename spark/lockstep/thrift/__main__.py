"""``python -m lockstep.thrift``: start the Thrift server, and have its names follow those of the pipeline's server."""

import logging
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping

from grpc import RpcError
from pyspark.errors import PySparkException

from lockstep import catalog, session, settings
from lockstep.settings import Settings
from lockstep.stack.errors import StackError
from lockstep.stack.spark_thrift import filled, remote
from lockstep.thrift import server
from lockstep.thrift.names import follow

log = logging.getLogger(__name__)
# What is published is seen after this time at most.
_EVERY_SECONDS = 5.0


def main() -> None:
    """Run until SIGTERM or SIGINT, or until the server ends."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    current = settings.load()
    try:
        process = server.start(current)
    except StackError as error:
        sys.exit(f"The Thrift server cannot start. {error}")
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    threading.Thread(target=_watch, args=(process, stopping), name="server", daemon=True).start()
    while not stopping.is_set():
        try:
            _follow(current, stopping)
        except (RpcError, PySparkException) as error:
            # One of the servers has ended, or is not there yet.
            log.warning("the names cannot be followed now: %s", str(error).strip().partition("\n")[0])
            stopping.wait(_EVERY_SECONDS)
    process.terminate()
    sys.exit(process.wait())


def _watch(process: "subprocess.Popen[bytes]", stopping: threading.Event) -> None:
    process.wait()
    stopping.set()


def _follow(current: Settings, stopping: threading.Event) -> None:
    refused: Mapping[str, str] = {}
    with catalog.connect(current, "thrift") as pipeline, session.connect(remote(current), "names") as readers:
        while not stopping.is_set():
            followed = follow(pipeline, readers)
            if followed.changed:
                log.info("followed: %s", ", ".join(followed.changed))
            if followed.refused != refused:
                refused = followed.refused
                log.warning("cannot be read yet: %s", "; ".join(f"{name}: {why}" for name, why in refused.items()))
            filled(current).touch()
            stopping.wait(_EVERY_SECONDS)


if __name__ == "__main__":
    main()
