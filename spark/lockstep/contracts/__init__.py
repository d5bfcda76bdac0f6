"""The streams of the platform, one module each; ``CONTRACTS`` finds them by name."""

from importlib import import_module
from pkgutil import iter_modules

from lockstep.contracts.base import Contract


def _discover() -> dict[str, Contract]:
    names = sorted(module.name for module in iter_modules(__path__) if module.name != "base")
    contracts = (import_module(f"{__name__}.{name}").CONTRACT for name in names)
    return {contract.name: contract for contract in contracts}


CONTRACTS: dict[str, Contract] = _discover()

__all__ = ["CONTRACTS", "Contract"]
