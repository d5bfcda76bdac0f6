"""``python -m lockstep.service``."""

import logging
import os
import signal
import sys
import threading

from lockstep import settings
from lockstep.service.loop import run


def main() -> None:
    """Run until SIGTERM or SIGINT, then stop the queries between two micro-batches.

    After SIGHUP, begin again with the code as it is now. The queries run on meanwhile, and those whose definition is the same
    are adopted.
    """
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    stopping, reloading = threading.Event(), threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())

    def reload(*_: object) -> None:
        reloading.set()
        stopping.set()

    signal.signal(signal.SIGHUP, reload)
    run(settings.load(), stopping, reloading=reloading)
    if reloading.is_set():
        # In the same process: its supervisor sees no end.
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])


if __name__ == "__main__":
    main()
