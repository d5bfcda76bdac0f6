"""How the tables of silver and gold differ from the columns that contracts and views declare, and how they follow."""

from typing import TYPE_CHECKING

from lockstep import dictionary, lake, ledger
from lockstep.batch import rollup
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.control.leases import lease
from lockstep.definition.column_changes import column_changes
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of
from lockstep.deploy.plan import TableChange
from lockstep.refine import silver

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lockstep.settings import Settings

# Live tables follow when their queries start.
_LAYERS = ("silver", "gold")
_HOLDER = "apply"


def look(settings: "Settings") -> dict[str, TableChange]:
    """By table, how it follows its columns; a table that has them already is left out. Only the tables' logs are read."""
    declared = {table.name: {c.name: c.type for c in table.columns} for table in dictionary.tables()}
    found = {}
    for table in lake.tables(settings, _LAYERS):
        if table in declared and (changes := column_changes(lake.types(settings, table), declared[table])):
            found[table] = TableChange(changes, lake.size(lake.path(settings, table)) if changes.wider else 0)
    return found


def follow(settings: "Settings", tables: "Iterable[str]") -> None:
    """Have these tables follow their columns, each under its lease. A batch run would do it before it writes.

    Raises:
        ColumnsRefused: a table cannot have the columns that are declared.
        LeaseHeld: a run has held a table for two minutes.
    """
    tables = {*tables}
    with connect(settings, _HOLDER) as spark:
        for contract in CONTRACTS.values():
            names = Tables.of(contract)
            if {names.log, names.current} & tables:
                with lease(settings, names.log, _HOLDER):
                    silver.follow_columns(spark, settings, contract, names)
        for view in VIEWS.values():
            gold = gold_of(view)
            if gold in tables and (newest := ledger.latest(settings, gold)):
                with lease(settings, gold, _HOLDER):
                    rollup.follow_columns(spark, settings, view, newest)
