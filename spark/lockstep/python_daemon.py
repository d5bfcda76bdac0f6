"""Spark's daemon of Python workers, with three changes.

Python does not look for modules in archives. Spark puts one of its own jars on Python's path. Each task of a worker has Python
forget what is on its path, and so reads the jar's list of 5,000 files again, in Python: longer than a small task takes. Nothing
is imported from there.

Spark takes each value of a row for a stateful operator out of Arrow by itself. To take a column at once is ten times as fast:
1 µs and not 11 for a row of eleven columns.

And the modules that state machines need are imported here, before the workers, which are forks of the daemon: else each of them
takes half a CPU second for them, and 50 MB.

Spark starts it by ``spark.python.daemon.module``.
"""

import gc
import sys
from collections.abc import Iterator
from importlib import import_module
from itertools import groupby
from operator import itemgetter
from typing import Any

_ARCHIVES = (".jar", ".zip")
# Spark's worker imports the first one as soon as a function takes or gives Arrow.
_MODULES = ("pandas", "lockstep.live.machine", "lockstep.batch.compute")


def leave_out_archives() -> None:
    """Remove the archives from the path, and from what Python has found out about it."""
    sys.path[:] = [path for path in sys.path if not path.endswith(_ARCHIVES)]
    for path in [path for path in sys.path_importer_cache if path.endswith(_ARCHIVES)]:
        del sys.path_importer_cache[path]


def load_by_columns(serializer: Any, stream: Any) -> Iterator[tuple[Any, Any, Any]]:
    """As ``TransformWithStateInPySparkRowSerializer.load_stream`` (seen in pyspark 4.1.4), but for the way to a batch's rows."""
    from pyspark.sql import Row
    from pyspark.sql.pandas.serializers import ArrowStreamSerializer
    from pyspark.sql.streaming.stateful_processor_util import TransformWithStateInPandasFuncMode as Mode

    from lockstep.definition.events import as_rows

    def rows() -> Iterator[tuple[tuple[Any, ...], Row]]:
        for batch in ArrowStreamSerializer.load_stream(serializer, stream):  # type: ignore[no-untyped-call]
            row_of = Row(*batch.schema.names)
            for values in as_rows(batch):
                yield tuple(values[offset] for offset in serializer.key_offsets), row_of(*values)

    for key, of_key in groupby(rows(), key=itemgetter(0)):
        yield Mode.PROCESS_DATA, key, map(itemgetter(1), of_key)
    yield Mode.PROCESS_TIMER, None, None
    yield Mode.COMPLETE, None, None


if __name__ == "__main__":
    leave_out_archives()
    # Imported here: it reads the command line, and from now on not from an archive.
    from pyspark.daemon import manager
    from pyspark.sql.pandas.serializers import TransformWithStateInPySparkRowSerializer

    TransformWithStateInPySparkRowSerializer.load_stream = load_by_columns  # type: ignore[method-assign]
    for module in _MODULES:
        import_module(module)
    # A worker's collections leave alone what it shares with the daemon.
    gc.freeze()
    manager()  # type: ignore[no-untyped-call]
