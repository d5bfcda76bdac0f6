"""Failpoints: named places at which a test may have the process killed: ``LOCKSTEP_FAILPOINT=name:nth``.

Not one of the settings, because no installation ever wants it. The places are listed in ``docs/operations/crash-points.md``.
"""

import os
import signal
from collections import Counter

VARIABLE = "LOCKSTEP_FAILPOINT"
_passed: Counter[str] = Counter()


def failpoint(name: str) -> None:
    """Kill this process group, without a goodbye, when it is here for the ``nth`` time and the variable says so.

    As the scheduler's machine would die: no ``finally``, no closed session, no released lease.
    """
    wanted = os.environ.get(VARIABLE)
    if wanted is None:
        return
    _passed[name] += 1
    if wanted == f"{name}:{_passed[name]}":
        os.killpg(0, signal.SIGKILL)
