"""``python -m lockstep.monitor``."""

import logging
import signal
import sys
import threading

from lockstep import settings
from lockstep.monitor.loop import run


def main() -> None:
    """Run until SIGTERM or SIGINT."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    # It logs every request, with several in each look.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    run(settings.load(), stopping)


if __name__ == "__main__":
    main()
