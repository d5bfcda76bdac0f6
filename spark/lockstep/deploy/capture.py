"""Tables of the source databases that are captured from now on, or not any more, and what they lack."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from lockstep.contracts.captured import captured
from lockstep.deploy.plan import Capture
from lockstep.stack import connect_api, source
from lockstep.stack.connector_config import connector_config, new_tables
from lockstep.stack.errors import Unhealthy

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.settings import Settings
    from lockstep.stack.source import SourceServer, SourceTable


# A name that PostgreSQL reads as it is.
_PLAIN = re.compile("[a-z_][a-z0-9_]*")


def look(settings: "Settings") -> Capture:
    """Compare the contracts with the connectors. Where Kafka Connect or a source does not answer, `lockstep status` says so."""
    found = [_look(settings, database) for database in settings.sources]
    lacking = {name: reasons for one in found for name, reasons in one.lacking.items()}
    return Capture(tuple(n for one in found for n in one.new), tuple(n for one in found for n in one.gone), lacking)


def _look(settings: "Settings", database: str) -> Capture:
    try:
        config, wanted = connect_api.registered(settings, database), connector_config(settings, database)
        new, gone = new_tables(config, wanted), new_tables(wanted, config)
        there = source.look_at(settings, database, new) if new else {}
        server = [*server_lacks(database, source.look_at_server(settings, database))] if new else []
    except Unhealthy:
        return Capture()
    # The tables of other databases than the project's are named with it.
    prefix = "" if database == settings.package else f"{database}."
    contracts = captured(settings, database)
    reasons = {name: (*server, *lacks(name, contracts[name], there.get(name))) for name in new}
    lacking = {f"{prefix}{name}": why for name, why in reasons.items() if why}
    return Capture(tuple(f"{prefix}{name}" for name in new), tuple(f"{prefix}{name}" for name in gone), lacking)


def server_lacks(database: str, server: "SourceServer") -> "Iterable[str]":
    """What the server of a source database lacks for capture, and how it gets it. Pure."""
    if server.wal_level != "logical":
        yield f"the server of {database} has wal_level = {server.wal_level}: set it to logical, and start the server again"
    if not server.may_replicate:
        yield f"the user {server.user} may not read the log of {database}: ALTER ROLE {server.user} REPLICATION"


def lacks(name: str, contract: "Contract", table: "SourceTable | None") -> "Iterable[str]":
    """What a table lacks to be captured, and how it gets it. Pure.

    Args:
        table: None: the database has no table of this name.
    """
    in_sql = ".".join(part if _PLAIN.fullmatch(part) else f'"{part}"' for part in name.split(".", 1))
    if table is None:
        yield "the database has no such table: create it, and its rows are captured from the first on"
        return
    if table.key != tuple(sorted(contract.unique_id)):
        key = f"({', '.join(table.key)})" if table.key else "missing"
        yield f"its primary key is {key}, and the contract's unique_id ({', '.join(contract.unique_id)}): make them the same"
    if missing := sorted(contract.columns.keys() - table.columns):
        yield f"it has no column {', '.join(missing)}, which will be null: correct the contract, or add it"
    if not table.has_old_rows:
        each = (
            "each of its partitions: ALTER TABLE ... REPLICA"
            if table.is_partitioned
            else f"ALTER TABLE {in_sql} REPLICA"
        )
        yield f"its deletes have no more than the key: {each} IDENTITY FULL"
    if not table.is_published and table.is_partitioned:
        yield (
            "the publication lockstep has its partitions, and not the table: ALTER PUBLICATION lockstep SET "
            "(publish_via_partition_root = true)"
        )
    elif not table.is_published:
        yield f"the publication lockstep does not have it: ALTER PUBLICATION lockstep ADD TABLE {in_sql}"
    if not table.is_readable:
        yield f"the platform's user may not read it: GRANT SELECT ON {in_sql} to it"
