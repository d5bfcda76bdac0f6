"""The version of a view's definition: a digest of everything that decides the values of its rows."""

import hashlib
import inspect
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lockstep.contracts import CONTRACTS

if TYPE_CHECKING:
    from lockstep.definition import View

_PLATFORM = Path(__file__).resolve().parents[1]
# Beside the view's own module, these decide the values of its rows, in both layers.
_MACHINERY = ("definition/*.py", "refine/parse.py", "refine/tokens.py", "batch/compute.py", "live/machine.py")
_WITHOUT_EFFECT = ("name", "state_partitions")


def definition_version(view: "View") -> str:
    """12 hex digits over everything that decides the values of the view's rows. Views that differ in it may give different rows.

    These are its declared values, the source of the modules that its functions are from, its streams' contracts, and the
    machinery that runs it. Its name and the number of its state partitions are not among them.
    """
    digest = hashlib.sha256(_machinery())
    for declared in fields(view):
        if declared.name not in _WITHOUT_EFFECT:
            digest.update(_of_value(getattr(view, declared.name)))
    for stream in view.streams:
        digest.update(repr(CONTRACTS[stream]).encode())
    return digest.hexdigest()[:12]


@cache
def _machinery() -> bytes:
    return b"".join(source.read_bytes() for pattern in _MACHINERY for source in sorted(_PLATFORM.glob(pattern)))


def _of_value(value: Any) -> bytes:
    if not inspect.isfunction(value):
        return repr(value).encode()
    code, file = value.__code__, Path(value.__code__.co_filename)
    source = file.read_bytes() if file.is_file() else code.co_code
    return f"{value.__qualname__}:{code.co_firstlineno}".encode() + source
