"""One value for the content of tables, whatever the order and the files of their rows.

It shares nothing with what it checks: delta-rs reads the tables, and plain Python adds up.
"""

import hashlib
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from deltalake import DeltaTable

from lockstep import lake
from lockstep.settings import Settings

Row = Mapping[str, Any]


def digest(
    settings: Settings, table: str, where: Callable[[Row], bool] = lambda _: True, without: Iterable[str] = ()
) -> str:
    """``<rows>:<sum of the rows' SHA-256>``: equal for equal contents, repeated rows counted.

    Args:
        where: which rows count.
        without: columns that do not count.
    """
    data = DeltaTable(lake.path(settings, table)).to_pyarrow_dataset()
    columns = sorted(set(data.schema.names) - set(without))
    # In batches, because the tables of a long run do not fit into memory as Python objects.
    rows = (row for batch in data.to_batches(columns=columns) for row in batch.to_pylist() if where(row))
    count = total = 0
    for row in rows:
        count += 1
        total += int.from_bytes(hashlib.sha256(repr(sorted(row.items())).encode()).digest())
    return f"{count}:{total % 2**256:064x}"
