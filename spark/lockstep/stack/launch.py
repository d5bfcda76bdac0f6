"""Become one part of the stack: ``python -m lockstep.stack.launch <part>``.

The supervisor starts every part through here, so secrets are read from their file by the process that needs them, and
no configuration file or command line holds them.
"""

import ctypes
import os
import pwd
import signal
import sys
from contextlib import suppress
from pathlib import Path

from lockstep import settings
from lockstep.stack.errors import StackError
from lockstep.stack.parts import Launch, inherited
from lockstep.stack.registry import LAUNCHABLE

_PR_SET_PDEATHSIG = 1
# What the supervisor tells its processes, and they their children: which supervisor it is, and which part.
_SUPERVISED = ("SUPERVISOR_SERVER_URL", "SUPERVISOR_PROCESS_NAME")


def become(launch: Launch, env: dict[str, str]) -> None:
    """Replace this process by the part's, under the user that it asks for."""
    if launch.user and os.geteuid() == 0:
        account = pwd.getpwnam(launch.user)
        os.initgroups(launch.user, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        env = env | {"HOME": account.pw_dir, "USER": launch.user}
    _end_with_parent()
    if launch.cwd:
        os.chdir(launch.cwd)
    for descriptor in launch.keep_open:
        os.set_inheritable(descriptor, True)
    os.execvpe(launch.argv[0], launch.argv, env | dict(launch.env))


def _end_with_parent() -> None:
    # A supervisor that is killed would leave its parts behind, holding their ports and the lease. Only Linux can tell them.
    # After the change of user, which clears it; `exec` keeps it.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def end_remains(name: str) -> None:
    """Kill what an earlier life of this part has started, and left behind when it was killed.

    Airflow's workers have inherited their scheduler's connections: while one of them lives, PostgreSQL takes the killed
    scheduler's transaction for an open one, and nobody else comes to the rows that it has locked.
    """
    if os.environ.get("SUPERVISOR_PROCESS_NAME") == name:
        end_all(os.environ["SUPERVISOR_SERVER_URL"], name)


def end_all(server: str, name: str) -> None:
    """Kill all that this supervisor's part has started, but this very process. A task's process leads a group of its own."""
    own = {f"{key}={value}".encode() for key, value in zip(_SUPERVISED, (server, name), strict=True)}
    # Not through psutil, which reads to the first empty variable: a process that has changed its title begins with such.
    for file in Path("/proc").glob("[0-9]*/environ"):
        pid = int(file.parent.name)
        with suppress(OSError):  # gone by now, or another user's
            if pid != os.getpid() and own <= {*file.read_bytes().split(b"\0")}:
                os.kill(pid, signal.SIGKILL)


def main(name: str) -> None:
    """Start the part of this name with the settings of the environment."""
    end_remains(name)
    found = settings.load()
    launch = LAUNCHABLE[name].launch
    if launch is None:
        sys.exit(f"{name} is a step of `lockstep up`, not a process.")
    try:
        become(launch(found), inherited(found))
    except StackError as error:
        sys.exit(f"{name} cannot start. {error}")


if __name__ == "__main__":
    main(sys.argv[1])
