"""What captured tables have in their contracts and not in their source database: a column or a table was dropped, or renamed."""

from collections.abc import Collection
from contextlib import suppress
from typing import TYPE_CHECKING

from lockstep.contracts.captured import captured
from lockstep.reconcile.source_rows import SourceUnreadable, columns_of

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.settings import Settings


def drifts(settings: "Settings", names: Collection[str]) -> dict[str, str]:
    """By captured table, what its source does not have. A source that does not answer is a problem of the service connect.

    Args:
        names: streams whose topic has records. A table that never had any may be made later.
    """
    found: dict[str, str] = {}
    for database in settings.sources:
        tables = {table: contract for table, contract in captured(settings, database).items() if contract.name in names}
        with suppress(SourceUnreadable):
            there = columns_of(settings, database, tables) if tables else {}
            found |= {tables[table].name: drift(tables[table], table, columns) for table, columns in there.items()}
    return {name: text for name, text in found.items() if text}


def drift(contract: "Contract", table: str, there: Collection[str]) -> str:
    """What the source table does not have of its contract; empty: it has all. Pure.

    Args:
        table: its schema and name.
        there: its columns; none: there is no such table.
    """
    if not there:
        return f"the source database has no table {table}, so nothing of it comes any more"
    lost = [name for name in contract.columns if name not in there]
    if not lost:
        return ""
    needed = [name for name in lost if name in {*contract.required, *contract.unique_id}]
    also = f", and go to quarantine without {', '.join(needed)}" if needed else ""
    return f"{table} in the source database has no column {', '.join(lost)}: its changes have null there{also}"
