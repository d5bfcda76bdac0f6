"""One action on one service: ``python -m lockstep.stack.step prepare|readiness|check|post_start <service>``.

These are the actions of ``lockstep up`` around a process, for an environment where something else starts the process. The health
check of a container is ``readiness``: what must hold before ``post_start`` runs and other services use it.
"""

import sys
from collections.abc import Callable

from lockstep import settings
from lockstep.errors import LockstepError
from lockstep.settings import Settings
from lockstep.stack.errors import Unhealthy
from lockstep.stack.registry import LAUNCHABLE
from lockstep.stack.services import Service

ACTIONS: dict[str, Callable[[Service, Settings], str | None]] = {
    "prepare": lambda service, current: service.prepare(current),
    "readiness": lambda service, current: service.ready(current),
    "check": lambda service, current: service.check(current),
    "post_start": lambda service, current: service.post_start(current),
}


def main(action: str, name: str) -> None:
    """Run the action with the settings of the environment. The exit code is 0 when it succeeded."""
    try:
        print(ACTIONS[action](LAUNCHABLE[name], settings.load()) or f"{name}: {action} succeeded")
    except (LockstepError, Unhealthy) as error:
        sys.exit(f"{name}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
