"""States and rows as JSON text, without loss: ``datetime`` (UTC) and ``Decimal`` come back as they were.

A time is kept as microseconds since the epoch. As ISO text, times took half of some states.
"""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from lockstep.definition.view import EPOCH, MICROSECOND

_TIME, _DECIMAL = "$time", "$decimal"


def dumps(value: Any) -> str:
    """The text of a state; raises TypeError for values that are neither JSON's nor ``datetime`` nor ``Decimal``."""
    return _ENCODER.encode(value)


def loads(text: str) -> Any:
    """The state of a text. Numbers with a fraction become ``Decimal``, in plain JSON too."""
    return _DECODER.decode(text)


def instant(text: str) -> datetime:
    """The time (UTC, aware) of an ISO text, as events carry it."""
    return datetime.fromisoformat(text).astimezone(UTC)


def text(time: datetime) -> str:
    """The ISO text of a time, as events carry it: texts sort as their times do."""
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def micros(time: datetime) -> int:
    """Microseconds since the epoch."""
    return (time.astimezone(UTC) - EPOCH) // MICROSECOND


def from_micros(number: int) -> datetime:
    """The time (UTC, aware) of microseconds since the epoch."""
    return EPOCH + number * MICROSECOND


def _encode(value: Any) -> dict[str, int | str]:
    if isinstance(value, datetime):
        return {_TIME: micros(value)}
    if isinstance(value, Decimal):
        return {_DECIMAL: str(value)}
    raise TypeError(f"a state cannot hold {value!r}: use dicts, lists, strings, numbers, datetime and Decimal")


def _decode(value: dict[str, Any]) -> Any:
    # Most dicts are longer, and it is called for each.
    if len(value) == 1:
        if _TIME in value:
            return from_micros(value[_TIME])
        if _DECIMAL in value:
            return Decimal(value[_DECIMAL])
    return value


# `json.dumps` and `json.loads` would make one for each call, which takes as long as a small text does.
_ENCODER = json.JSONEncoder(default=_encode, separators=(",", ":"))
_DECODER = json.JSONDecoder(object_hook=_decode, parse_float=Decimal)
