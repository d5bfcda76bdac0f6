"""Each defence can be switched off, to show that it is needed. In a child process, or undone by ``monkeypatch``."""

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark import cloudpickle

from lockstep import lake
from lockstep.control import database
from lockstep.failpoints import failpoint
from lockstep.ingest import bronze
from lockstep.lake import writes
from lockstep.ledger import heads
from lockstep.ledger.ranges import decode

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])


def without_transaction_id(patch: Callable[[Any, str, Any], None] = setattr) -> None:
    """Commit without saying which write it is."""

    def writer(df: Any, txn: lake.Txn, record: Any) -> Any:
        return df.write.format("delta").option("userMetadata", json.dumps(record))

    patch(writes, "writer", writer)


def without_lease(patch: Callable[[Any, str, Any], None] = setattr) -> None:
    """Let anybody write at any time."""

    @contextmanager
    def anybody(settings: Any, table: str, holder: str) -> Iterator[Any]:
        with database.control(settings) as connection:
            yield connection

    patch(bronze, "lease", anybody)


def without_order() -> None:
    """Move the ledger's head before the commit, with a failpoint between them."""

    append = lake.append

    def early(df: Any, config: Any, table: str, txn: lake.Txn, record: Any) -> None:
        with database.control(config) as connection:
            heads.advance(connection, table, 1, record["seq"], decode(record["ranges"]))
        failpoint("head-moved")
        append(df, config, table, txn, record)

    lake.append = early


SWITCHES = {
    "transaction-id": without_transaction_id,
    "lease": without_lease,
    "order": without_order,
}


def stall(name: str, nth: int) -> None:
    """Have one task of the ``nth`` job that reads Kafka say that it reads (``name``), and wait for ``name.go``."""
    read, jobs = bronze.read_range, itertools.count(1)

    def slowly(spark: Any, settings: Any, ranges: Any) -> Any:
        rows = read(spark, settings, ranges)
        if next(jobs) != nth:
            return rows
        return rows.mapInArrow(_waiting(name), rows.schema)

    bronze.read_range = slowly


def _waiting(name: str) -> Callable[[Any], Any]:
    def wait(batches: Any) -> Any:
        with suppress(FileExistsError):
            Path(name).touch(exist_ok=False)
            # Longer than the retry takes on a slow machine; a test that dies leaves no task behind for ever.
            until = time.monotonic() + 300
            while not Path(f"{name}.go").exists() and time.monotonic() < until:
                time.sleep(0.02)
        yield from batches

    return wait
