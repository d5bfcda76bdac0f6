"""Become one part of the stack: ``python -m lockstep.stack.launch <part>``.

The supervisor starts every part through here, so secrets are read from their file by the process that needs them, and
no configuration file or command line holds them.
"""

import os
import pwd
import sys

from lockstep import settings
from lockstep.stack.errors import StackError
from lockstep.stack.parts import Launch, inherited
from lockstep.stack.registry import LAUNCHABLE


def become(launch: Launch, env: dict[str, str]) -> None:
    """Replace this process by the part's, under the user that it asks for."""
    if launch.user and os.geteuid() == 0:
        account = pwd.getpwnam(launch.user)
        os.initgroups(launch.user, account.pw_gid)
        os.setgid(account.pw_gid)
        os.setuid(account.pw_uid)
        env = env | {"HOME": account.pw_dir, "USER": launch.user}
    if launch.cwd:
        os.chdir(launch.cwd)
    for descriptor in launch.keep_open:
        os.set_inheritable(descriptor, True)
    os.execvpe(launch.argv[0], launch.argv, env | dict(launch.env))


def main(name: str) -> None:
    """Start the part of this name with the settings of the environment."""
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
