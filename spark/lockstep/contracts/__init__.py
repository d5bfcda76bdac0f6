"""The contracts of the project's streams; ``CONTRACTS`` finds them by name."""

from lockstep.contracts.contract import Contract
from lockstep.project import Registry

CONTRACTS: Registry[Contract] = Registry("contracts", "CONTRACT", lambda contract: contract.problems)

__all__ = ["CONTRACTS", "Contract"]
