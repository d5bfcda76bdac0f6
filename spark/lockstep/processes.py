"""Processes that end with their parent, and processes that have lost it."""

import ctypes
import os
import signal
import sys
import threading
import time
from contextlib import suppress

import psutil

# From <linux/prctl.h>.
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
# A process that outlives its parent holds locks and connections that the next one waits for, so this is short.
_LOOK_SECONDS = 0.5


def end_with_parent() -> None:
    """End this Python process at once when its parent has ended, however the parent ended.

    A thread watches the parent. The kernel's own signal (``signal_when_parent_ends``) does not fit here: the kernel sends it when
    the *thread* that started this process ends, and Spark's server starts its Python workers from threads that come and go.
    """
    parent, never = os.getppid(), threading.Event()

    def watch() -> None:
        while os.getppid() == parent:
            never.wait(_LOOK_SECONDS)
        # Not `sys.exit`: it would end this thread only, and the main thread may wait for a server that is gone.
        os._exit(1)

    threading.Thread(target=watch, name="end-with-parent", daemon=True).start()


def signal_when_parent_ends(number: signal.Signals) -> None:
    """Have the kernel send this signal to this process when its parent ends. Does nothing where there is no Linux.

    For a process that becomes another program: the request survives ``exec``, where a thread of ours does not. It does not
    survive a change of user, and child processes do not inherit it.
    """
    _prctl(_PR_SET_PDEATHSIG, number)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends (a *child subreaper*). Does nothing where there is no Linux.

    Child processes do not inherit it.
    """
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def end_descendants(grace_seconds: float) -> None:
    """Wait until all descendants of this process have ended, and kill those that still run after some seconds."""
    deadline = time.monotonic() + grace_seconds
    # Again, because one that ends may have started others in the meantime.
    while descendants := psutil.Process().children(recursive=True):
        _, late = psutil.wait_procs(descendants, max(0.0, deadline - time.monotonic()))
        for process in late:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(late)


def _prctl(option: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value)
