"""The form of a replay in Airflow, derived from the JSON schema of :class:`~lockstep.replay.request.Request`.

Airflow's ``Param`` is JSON schema too. The DAG file imports this module, so it imports neither views nor Spark.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from lockstep.replay.request import Request

_ZONE = {"description": "Event time, in the zone that the page shows (bottom left; UTC unless you chose another)"}
_RULE = {"section": "The rule"}
_INSTEAD = {"section": "Instead of a time"}
# What only the page needs: the section of a field, the labels of its choices, and texts that point at other fields.
ON_THE_PAGE: Mapping[str, Mapping[str, Any]] = {
    "from": _ZONE,
    "to": _ZONE,
    "approve": {"values_display": {"by_hand": "Somebody, by hand", "by_rule": "The rule below"}},
    "max_changed_percent": _RULE,
    "max_changed_windows": _RULE,
    "offsets": _INSTEAD | {"description": 'Of the one topic above: {"0": [start, end], …} by partition'},
    "versions": _INSTEAD,
}


def fields(choices: Mapping[str, Sequence[str]]) -> dict[str, dict[str, Any]]:
    """By field, the arguments of its ``Param``.

    Args:
        choices: by field, the names that the page offers for it.
    """
    offered = {name: {"examples": list(names)} for name, names in choices.items()}
    return {
        name: {**_arguments(schema), **ON_THE_PAGE.get(name, {}), **offered.get(name, {})}
        for name, schema in Request.model_json_schema()["properties"].items()
    }


def _arguments(schema: Mapping[str, Any]) -> dict[str, Any]:
    """A field's schema as the page can show it: one type instead of ``anyOf``, and null for a field that may stay empty."""
    types = [choice for choice in schema.get("anyOf", ()) if choice != {"type": "null"}]
    arguments = {name: value for name, value in schema.items() if name != "anyOf"} | (types[0] if types else {})
    if types or schema.get("default") == []:
        # The page sends null when all names were taken out of a list again, and an empty text for an empty line.
        arguments |= {"type": ["null", arguments["type"]], "default": None}
        if "pattern" in arguments:
            arguments["pattern"] = f"^({arguments['pattern'].removeprefix('^').removesuffix('$')})?$"
    return arguments
