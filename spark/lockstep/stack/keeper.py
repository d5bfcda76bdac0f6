"""Run supervisord, and end what it leaves behind when it is killed: ``python -m lockstep.stack.keeper <its arguments>``.

When supervisord is killed, the kernel sends the services their stop signal. Not all of them end by it: Airflow's scheduler waits
for its workers, which have got no signal.
"""

import os
import subprocess
import sys
from contextlib import suppress

from lockstep import processes

# The data survives a kill at any moment, so this is short: the next `lockstep up` needs the ports.
_GRACE_SECONDS = 10


def main(arguments: list[str]) -> int:
    """Run supervisord in the foreground until it ends. Returns its exit code."""
    processes.adopt_orphans()
    command = [sys.executable, "-P", "-m", "supervisor.supervisord", *arguments]
    with subprocess.Popen(command, stderr=subprocess.PIPE) as supervisord:
        # What it cannot log it writes there, and it ends if that fails too: a full disk would end the whole stack.
        for line in supervisord.stderr or ():
            with suppress(OSError):
                os.write(sys.stderr.fileno(), line)
    processes.end_descendants(_GRACE_SECONDS)
    return supervisord.returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
