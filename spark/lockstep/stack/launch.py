"""Become one service of the stack: ``python -m lockstep.stack.launch <service>``.

The supervisor starts every service through this module. So the process that needs the secrets reads them from their file, and no
configuration file or command line holds them.
"""

import os
import pwd
import signal
import sys

from lockstep import processes, settings
from lockstep.stack import started
from lockstep.stack.errors import StackError
from lockstep.stack.registry import LAUNCHABLE, known
from lockstep.stack.services import Launch, inherited
from lockstep.stack.supervisor import Supervisor


def become(launch: Launch, env: dict[str, str], stop_signal: str) -> None:
    """Replace this process by the service's, under the account that it asks for."""
    if launch.user and os.geteuid() == 0:
        account = pwd.getpwnam(launch.user)
        os.initgroups(launch.user, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        env = env | {"HOME": account.pw_dir, "USER": launch.user}
    # A supervisor that is killed would leave its services behind, with their ports and the lease. The service's own signal,
    # because PostgreSQL waits for its clients when it gets another. After the change of user, which would clear the request.
    processes.signal_when_parent_ends(signal.Signals[f"SIG{stop_signal}"])
    os.nice(launch.nice)
    if launch.cwd:
        os.chdir(launch.cwd)
    for descriptor in launch.keep_open:
        os.set_inheritable(descriptor, True)
    os.execvpe(launch.argv[0], launch.argv, env | dict(launch.env))


def main(name: str) -> None:
    """Start the service of this name with the settings of the environment."""
    # A container has no supervisor: its settings are those of its environment.
    supervised = os.environ.get("SUPERVISOR_PROCESS_NAME") == name
    current = settings.load()
    if supervised and (given := started.read(current, name)):
        given.give(os.environ, current)
        current = settings.load()
    service = (LAUNCHABLE | known())[name]
    if service.launch is None:
        sys.exit(f"{name} is a step of `lockstep up`, not a process.")
    # Airflow's workers have inherited their scheduler's connections. While one of them lives, PostgreSQL takes the killed
    # scheduler's transaction for an open one, and nobody gets the rows that it has locked.
    # A container ends with its first process, and nothing is left behind.
    if supervised:
        Supervisor(current).kill_orphans()
    try:
        become(service.launch(current), inherited(current), service.stop_signal)
    except StackError as error:
        sys.exit(f"{name} cannot start. {error}")


if __name__ == "__main__":
    main(sys.argv[1])
