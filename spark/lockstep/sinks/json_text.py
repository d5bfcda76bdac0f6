"""Rows as JSON text for topics, with every digit that they have."""

import base64
import json
import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

from lockstep.formats.json_text import spelled


def json_text(row: dict[str, Any]) -> str:
    """One JSON object. Two rows have the same text if they have the same values in the same order.

    Times are ISO 8601 in UTC with microseconds, decimals are text, bytes are base64, and what JSON has no number for is
    ``"NaN"``, ``"Infinity"`` or ``"-Infinity"``.
    """
    return json.dumps(_plain(row), separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {name: _plain(inner) for name, inner in value.items()}
        case list() | tuple():
            return [_plain(inner) for inner in value]
        case datetime():
            instant = value if value.tzinfo else value.replace(tzinfo=UTC)
            return instant.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        case date():
            return value.isoformat()
        case Decimal():
            return str(value)
        case bytes():
            return base64.b64encode(value).decode()
        case float() if not math.isfinite(value):
            return spelled(value)
        case _:
            return value
