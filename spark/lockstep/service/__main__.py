"""``python -m lockstep.service``."""

import logging
import signal
import sys
import threading

from lockstep import settings
from lockstep.service.loop import run


def main() -> None:
    """Run until SIGTERM or SIGINT, then stop the queries between two micro-batches."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    run(settings.load(), stopping)


if __name__ == "__main__":
    main()
