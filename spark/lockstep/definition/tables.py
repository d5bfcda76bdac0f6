"""The names of all tables: of a stream, of a view, and of a replay's shadow. No other module builds a table's name."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lockstep.contracts import CONTRACTS
from lockstep.definition.columns import HISTORY

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.definition import View


@dataclass(frozen=True)
class Tables:
    """A stream's tables. ``log`` has every good row once, and silver's ledger; ``current`` only exists for changes.

    ``history`` is a SQL view over the log of changes; None too where the source table has columns of the same names.
    """

    bronze: str
    log: str
    current: str | None
    history: str | None
    quarantine: str

    @classmethod
    def of(cls, contract: "Contract") -> "Tables":
        changes = contract.kind == "changes"
        return cls(
            bronze=f"bronze.{contract.name}",
            log=f"silver.{contract.name}_changes" if changes else f"silver.{contract.name}",
            current=f"silver.{contract.name}" if changes else None,
            history=history_of(contract.name) if changes and not HISTORY.keys() & contract.columns else None,
            quarantine=f"quarantine.{contract.name}",
        )


def history_of(stream: str) -> str:
    """The history of a captured table, by the name of its stream."""
    return f"silver.{stream}_history"


def bronze_of(contract: "Contract") -> str:
    """The stream's bronze table."""
    return Tables.of(contract).bronze


def silver_of(contract: "Contract") -> str:
    """The silver table that readers and gates look at: of a stream of changes, that of the current rows."""
    tables = Tables.of(contract)
    return tables.current or tables.log


def contract_of(table: str) -> "Contract | None":
    """The contract of the stream that ``layer.name`` is a table of; also of the changes and the history of a captured table."""
    name = table.partition(".")[2]
    of_captured = (CONTRACTS.get(name.removesuffix(suffix)) for suffix in ("_changes", "_history"))
    return CONTRACTS.get(name) or next(filter(None, of_captured), None)


def written_under(table: str) -> str:
    """The table whose lease a writer of ``layer.name`` holds: those that one run of refine writes have one together."""
    contract = contract_of(table) if table.partition(".")[0] in {"silver", "quarantine"} else None
    return Tables.of(contract).log if contract else table


def gold_of(view: "View | str") -> str:
    """The view's table in the batch layer; the view may be named."""
    return f"gold.{_name(view)}"


def live_of(view: "View | str") -> str:
    """The view's table in the live layer; the view may be named."""
    return f"live.{_name(view)}"


def late_of(view: "View | str") -> str:
    """The view's late rows; the view may be named."""
    return f"late.{_name(view)}"


def serving_of(view: "View | str") -> str:
    """The view's merged answer; the view may be named."""
    return f"serving.{_name(view)}"


def _name(view: "View | str") -> str:
    return view if isinstance(view, str) else view.name


def shadow_of(table: str, replay: str) -> str:
    """The table in which a replay computes new rows of ``layer.name``."""
    return f"shadow.{table.replace('.', '__')}__{replay.replace('-', '_')}"
