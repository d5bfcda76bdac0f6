"""Spark's daemon of Python workers, with two changes.

Python does not look for modules in archives. Spark puts one of its own jars on Python's path. Each task of a worker has Python
forget what is on its path, and so reads the jar's list of 5,000 files again, in Python: longer than a small task takes. Nothing
is imported from there.

And the modules that state machines need are imported here, before the workers, which are forks of the daemon: else each of them
takes half a CPU second for them, and 50 MB.

Spark starts it by ``spark.python.daemon.module``.
"""

import gc
import sys
from importlib import import_module

_ARCHIVES = (".jar", ".zip")
# Spark's worker imports the first one as soon as a function takes or gives Arrow.
_MODULES = ("pandas", "lockstep.live.machine", "lockstep.batch.compute")


def leave_out_archives() -> None:
    """Remove the archives from the path, and from what Python has found out about it."""
    sys.path[:] = [path for path in sys.path if not path.endswith(_ARCHIVES)]
    for path in [path for path in sys.path_importer_cache if path.endswith(_ARCHIVES)]:
        del sys.path_importer_cache[path]


if __name__ == "__main__":
    leave_out_archives()
    # Imported here: it reads the command line, and from now on not from an archive.
    from pyspark.daemon import manager

    for module in _MODULES:
        import_module(module)
    # A worker's collections leave alone what it shares with the daemon.
    gc.freeze()
    manager()  # type: ignore[no-untyped-call]
