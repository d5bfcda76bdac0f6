"""Run supervisord, and end what it leaves behind when it is killed: ``python -m lockstep.stack.keeper <its arguments>``.

When supervisord is killed, the kernel sends the services their stop signal. Not all of them end by it: Airflow's scheduler waits
for its workers, which have got no signal.
"""

import subprocess
import sys

from lockstep import processes

# The data survives a kill at any moment, so this is short: the next `lockstep up` needs the ports.
_GRACE_SECONDS = 10


def main(arguments: list[str]) -> int:
    """Run supervisord in the foreground until it ends. Returns its exit code."""
    processes.adopt_orphans()
    code = subprocess.run([sys.executable, "-P", "-m", "supervisor.supervisord", *arguments], check=False).returncode
    processes.end_descendants(_GRACE_SECONDS)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
