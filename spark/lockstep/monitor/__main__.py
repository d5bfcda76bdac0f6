"""``python -m lockstep.monitor``."""

import logging
import os
import signal
import sys
import threading

from lockstep import settings
from lockstep.monitor.loop import run

_SETTLED = "settled"


def main() -> None:
    """Run until SIGTERM or SIGINT. When the project's code is changed, begin again in the same process."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s", stream=sys.stdout)
    # It logs every request, with several in each look.
    logging.getLogger("httpx").setLevel(logging.WARNING)
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    if run(settings.load(), stopping, settled=_SETTLED in sys.argv):
        os.execv(sys.executable, [sys.executable, "-m", "lockstep.monitor", _SETTLED])


if __name__ == "__main__":
    main()
