"""Failpoints: named places at which a test can kill the process: ``LOCKSTEP_FAILPOINT=name:nth``.

The variable is no setting, because no installation wants it. ``docs/operations/failpoints.md`` lists the places.
"""

import os
import signal
from collections import Counter

VARIABLE = "LOCKSTEP_FAILPOINT"
_passed: Counter[str] = Counter()


def failpoint(name: str) -> None:
    """Kill this process group (SIGKILL) when the variable names this place, at its ``nth`` pass.

    As if the machine had died: no ``finally`` runs, no session is closed, no lease is released.
    """
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    _passed[name] += 1
    if wanted == f"{name}:{_passed[name]}":
        os.killpg(0, signal.SIGKILL)
