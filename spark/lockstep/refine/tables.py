"""The tables of one stream."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lockstep.contracts import Contract


@dataclass(frozen=True)
class Tables:
    """Names by role. ``log`` holds every good row once, and silver's ledger; ``current`` only exists for changes."""

    bronze: str
    log: str
    current: str | None
    quarantine: str

    @classmethod
    def of(cls, contract: "Contract") -> "Tables":
        changes = contract.kind == "changes"
        return cls(
            bronze=f"bronze.{contract.name}",
            log=f"silver.{contract.name}_changes" if changes else f"silver.{contract.name}",
            current=f"silver.{contract.name}" if changes else None,
            quarantine=f"quarantine.{contract.name}",
        )
