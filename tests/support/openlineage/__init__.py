"""OpenLineage's own schemas, and what they say of an event. They share no code with what writes the events."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from referencing import Registry, Resource
from tests.support.paths import CHECKOUT

OURS = CHECKOUT / "infra" / "openlineage" / "facets.json"


def complaints(event: dict[str, Any]) -> list[str]:
    """What the specification and the schemas of the event's facets do not accept; none: a receiver can read it."""
    checks = [(event, event["schemaURL"]), *((facet, facet["_schemaURL"]) for facet in facets(event))]
    return [
        f"{schema}: {error.json_path}: {error.message}"
        for value, schema in checks
        for error in Draft202012Validator({"$ref": schema}, registry=schemas()).iter_errors(value)
    ]


def facets(value: Any) -> Iterator[dict[str, Any]]:
    """The facets in an event, however deep."""
    if isinstance(value, dict):
        if "_schemaURL" in value:
            yield value
        for part in value.values():
            yield from facets(part)
    elif isinstance(value, list):
        for part in value:
            yield from facets(part)


@cache
def schemas() -> Registry[Any]:
    """The specification, its facets and ours. One that an event names and that is not here is an error."""
    files = [*Path(__file__).parent.glob("*.json"), OURS]
    contents = [json.loads(file.read_text()) for file in files]
    return Registry().with_resources([(schema["$id"], Resource.from_contents(schema)) for schema in contents])
