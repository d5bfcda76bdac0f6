"""Which table of which source database a contract captures: its topic is named ``<database>.<schema>.<table>``. Pure."""

from typing import TYPE_CHECKING

from lockstep.contracts import captured_tables

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.settings import Settings


def captured(settings: "Settings", database: str) -> "dict[str, Contract]":
    """By table (``schema.name``), the contracts that capture the tables of a source database."""
    contracts = captured_tables().values()
    return {c.topic.removeprefix(f"{database}."): c for c in contracts if database_of(settings, c) == database}


def database_of(settings: "Settings", contract: "Contract") -> str:
    """The name of the source database."""
    return contract.database or settings.package


def table_of(settings: "Settings", contract: "Contract") -> tuple[str, str]:
    """The schema and the name of the captured table."""
    schema, _, name = contract.topic.removeprefix(f"{database_of(settings, contract)}.").partition(".")
    return schema, name


def slot_of(settings: "Settings", database: str) -> str:
    """The name of a source database's replication slot: databases of one server have slots of different names."""
    return "lockstep" if database == settings.package else f"lockstep_{database}"
