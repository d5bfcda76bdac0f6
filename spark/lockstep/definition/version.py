"""The version of a view's definition: a digest of everything that decides the values of its rows."""

import hashlib
import inspect
from dataclasses import fields
from enum import Enum
from functools import cache, partial
from pathlib import Path
from types import CodeType
from typing import TYPE_CHECKING, Any

from lockstep.contracts import CONTRACTS
from lockstep.definition.source import without_arguments

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.definition import View

_PLATFORM = Path(__file__).resolve().parents[1]
# Beside the view's own module, these decide the values of its rows, in both layers.
_MACHINERY = (
    "definition/*.py",
    "formats/*.py",
    "refine/decode.py",
    "refine/parse.py",
    "refine/rules.py",
    "refine/tokens.py",
    "batch/compute.py",
    "live/machine.py",
    "live/timing_wheel.py",
)
# What a view declares that decides no row. In its module, these arguments of ``VIEW = …(…)`` do not count either.
_WITHOUT_EFFECT = ("name", "state_partitions", "approximate", "max_lag", "description", "column_descriptions")


def definition_version(view: "View") -> str:
    """12 hex digits over everything that decides the values of the view's rows. Views that differ in it may give different rows.

    These are its declared values, the source of the modules that its functions are from, its streams' contracts, and the
    machinery that runs it. Its name, the number of its state partitions, how its rows are compared, how late they may be, and
    the texts that describe it are not among them.
    """
    digest = hashlib.sha256(_machinery())
    for declared in fields(view):
        if declared.name not in _WITHOUT_EFFECT:
            digest.update(_of_value(getattr(view, declared.name)))
    for stream in view.streams:
        digest.update(_of_contract(CONTRACTS[stream]))
    return digest.hexdigest()[:12]


def contract_version(contract: "Contract") -> str:
    """12 hex digits over everything that decides the values of a stream's silver rows."""
    digest = hashlib.sha256(_machinery())
    digest.update(_of_contract(contract))
    return digest.hexdigest()[:12]


def _of_contract(contract: "Contract") -> bytes:
    # The subject has the key of the row's tokens. Without tokens, it decides nothing.
    return f"{contract!r}{contract.subject if contract.pii else ''}".encode()


@cache
def _machinery() -> bytes:
    return b"".join(source.read_bytes() for pattern in _MACHINERY for source in sorted(_PLATFORM.glob(pattern)))


def _of_value(value: Any) -> bytes:
    """The same bytes in every process: the ``repr`` of a function or a plain object has its address, so it is not used."""
    if isinstance(value, (set, frozenset)):
        return _of_value(sorted(value, key=repr))
    if isinstance(value, (tuple, list)):
        return b"(" + b",".join(map(_of_value, value)) + b")"
    if isinstance(value, dict):
        return _of_value([*value.items()])
    if inspect.ismethod(value):
        return _of_value((value.__func__, value.__self__))
    if isinstance(value, partial):
        return _of_value((value.func, value.args, value.keywords))
    if inspect.isfunction(value):
        return value.__qualname__.encode() + _source(value.__code__)
    if hasattr(value, "__dict__") and not isinstance(value, (type, Enum)):
        return type(value).__qualname__.encode() + _of_value(vars(value))
    return repr(value).encode()


def _source(code: CodeType) -> bytes:
    """The source of the function's module, and the line of it where the function begins."""
    file, line = Path(code.co_filename), code.co_firstlineno
    if not file.is_file():
        return f":{line}".encode() + code.co_code
    source, line = without_arguments(file.read_bytes(), "VIEW", _WITHOUT_EFFECT, line)
    return f":{line}".encode() + source
