"""Tables of the source database that are captured from now on, or not any more, and what they lack."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lockstep.contracts import CONTRACTS
from lockstep.deploy.plan import Capture
from lockstep.stack import connect_api, source
from lockstep.stack.connector_config import connector_config, new_tables
from lockstep.stack.errors import Unhealthy

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.settings import Settings
    from lockstep.stack.source import SourceTable


def look(settings: "Settings") -> Capture:
    """Compare the contracts with the connector. Where Kafka Connect or the source does not answer, `lockstep status` says so."""
    try:
        config, wanted = connect_api.registered(settings), connector_config(settings)
        new, gone = new_tables(config, wanted), new_tables(wanted, config)
        there = source.look_at(settings, new) if new else {}
    except Unhealthy:
        return Capture()
    by_table = {c.topic.removeprefix(f"{settings.package}."): c for c in CONTRACTS.values() if c.kind == "changes"}
    reasons = {name: tuple(lacks(name, by_table[name], there.get(name))) for name in new}
    return Capture(tuple(new), tuple(gone), {name: why for name, why in reasons.items() if why})


def lacks(name: str, contract: "Contract", table: "SourceTable | None") -> "Iterable[str]":
    """What a table lacks to be captured, and how it gets it. Pure.

    Args:
        table: None: the database has no table of this name.
    """
    if table is None:
        yield "the database has no such table: create it, and its rows are captured from the first on"
        return
    if table.key != tuple(sorted(contract.unique_id)):
        key = f"({', '.join(table.key)})" if table.key else "missing"
        yield f"its primary key is {key}, and the contract's unique_id ({', '.join(contract.unique_id)}): make them the same"
    if missing := sorted(contract.columns.keys() - table.columns):
        yield f"it has no column {', '.join(missing)}, which will be null: correct the contract, or add it"
    if not table.has_old_rows:
        yield f"its deletes have no more than the key: ALTER TABLE {name} REPLICA IDENTITY FULL"
    if not table.is_published:
        yield f"the publication lockstep does not have it: ALTER PUBLICATION lockstep ADD TABLE {name}"
    if not table.is_readable:
        yield f"the platform's user may not read it: GRANT SELECT ON {name} to it"
