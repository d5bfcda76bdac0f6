"""States and rows as JSON text, exactly: ``datetime`` (UTC) and ``Decimal`` come back as they went in."""

import json
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

_TIME, _DECIMAL = "$time", "$decimal"


def dumps(value: Any) -> str:
    """The text of a state; raises TypeError for what JSON does not know and is neither ``datetime`` nor ``Decimal``."""
    return json.dumps(value, default=_encode, separators=(",", ":"))


def loads(text: str) -> Any:
    """The state of a text, or of plain JSON, whose numbers with a fraction come out as ``Decimal``."""
    return json.loads(text, object_hook=_decode, parse_float=Decimal)


def instant(text: str) -> datetime:
    """The time (UTC, aware) of an ISO text, as events carry it."""
    return datetime.fromisoformat(text).astimezone(UTC)


def _encode(value: Any) -> dict[str, str]:
    if isinstance(value, datetime):
        return {_TIME: value.astimezone(UTC).isoformat()}
    if isinstance(value, Decimal):
        return {_DECIMAL: str(value)}
    raise TypeError(f"a state cannot hold {value!r}: use dicts, lists, strings, numbers, datetime and Decimal")


def _decode(found: dict[str, Any]) -> Any:
    if found.keys() == {_TIME}:
        return datetime.fromisoformat(found[_TIME])
    if found.keys() == {_DECIMAL}:
        return Decimal(found[_DECIMAL])
    return found
