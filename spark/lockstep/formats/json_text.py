"""Values of Avro and Protobuf as JSON, in the words that Spark reads."""

import base64
import json
import math
from collections.abc import Mapping
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID


def json_text(fields: Mapping[str, Any]) -> str:
    """The text of the JSON object: times in ISO 8601, decimals with all their digits as texts, bytes in Base64."""
    return json.dumps(fields, default=_plain, ensure_ascii=False)


def spelled(value: float) -> str:
    """A number that is not finite, for which JSON has none, as text: ``NaN``, ``Infinity`` or ``-Infinity``."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _plain(value: Any) -> str:
    if isinstance(value, datetime | date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, UUID):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no value of a record")
