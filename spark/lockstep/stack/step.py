"""One step of one part: ``python -m lockstep.stack.step prepare|answers|check|settle <part>``.

What ``lockstep up`` does around a process, for where something else starts it. A container's health check is ``answers``: what
must hold before the part is settled and others use it.
"""

import sys
from collections.abc import Callable

from lockstep import settings
from lockstep.errors import LockstepError
from lockstep.settings import Settings
from lockstep.stack.errors import Unhealthy
from lockstep.stack.parts import Part
from lockstep.stack.registry import LAUNCHABLE

STEPS: dict[str, Callable[[Part, Settings], str | None]] = {
    "prepare": lambda part, found: part.prepare(found),
    "answers": lambda part, found: (part.answers or part.check)(found),
    "check": lambda part, found: part.check(found),
    "settle": lambda part, found: part.settle(found),
}


def main(step: str, name: str) -> None:
    """Take the step with the settings of the environment; the exit code says whether it went well."""
    try:
        print(STEPS[step](LAUNCHABLE[name], settings.load()) or f"{name}: {step} is done")
    except (LockstepError, Unhealthy) as error:
        sys.exit(f"{name}: {error}")


if __name__ == "__main__":
    main(*sys.argv[1:])
