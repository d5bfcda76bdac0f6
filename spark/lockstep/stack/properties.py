"""Java's ``.properties`` files, which Kafka, Connect and Spark read."""

import json
from collections.abc import Mapping


def written(properties: Mapping[str, str]) -> str:
    """One line for each property.

    Java takes a backslash for the begin of an escape, and Kafka reads the file as Latin-1: so both, and every letter outside of
    ASCII, are escaped. JSON's escapes (``\\\\``, ``\\u00e9``) are those of a property.
    """
    return "".join(f"{name}={json.dumps(value)[1:-1]}\n" for name, value in properties.items())
