"""Options that several commands have, and those that are derived from a pydantic model, so that a field is spelled once."""

import functools
import inspect
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from pydantic import BaseModel
from rich.markup import escape

from lockstep.errors import LockstepError

_TYPES: Mapping[str, Any] = {"boolean": bool, "integer": int, "number": float, "array": list[str]}


class OptionInvalid(LockstepError):
    """An option has a value that is not of its type."""


def instant(text: str) -> datetime:
    """The moment that ``--time`` names; without a time zone it is in UTC.

    Raises:
        OptionInvalid: it is no time.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise OptionInvalid(f"--time {text} is no time: write it as 2026-11-20T10:00:00Z.") from None
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def options_of(model: type[BaseModel]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of the model. It gets them as ``fields``: a mapping from field to value.

    An option that is not given is None, or False. A list is an option to repeat, and its name is singular. A mapping is JSON.
    """
    schemas = model.model_json_schema()["properties"]
    names = {name: field.alias or name for name, field in model.model_fields.items()}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            fields = {field: _value(schemas[field], field, given.pop(name)) for name, field in names.items()}
            command(**given, fields=fields)

        own = inspect.signature(command, eval_str=True).parameters
        options = [_parameter(name, field, schemas[field]) for name, field in names.items()]
        others = [p.replace(kind=p.KEYWORD_ONLY) for p in own.values() if p.name != "fields"]
        with_options.__signature__ = inspect.Signature([*others, *options])  # type: ignore[attr-defined]
        return with_options

    return decorate


def _parameter(name: str, field: str, schema: Mapping[str, Any]) -> inspect.Parameter:
    kind = _type(schema)
    option = "--" + (field.removesuffix("s") if kind == "array" else field).replace("_", "-")
    repeat = "; repeat it for more" if kind == "array" else "; as JSON" if kind == "object" else ""
    choices = f"; one of {', '.join(schema['enum'])}" if "enum" in schema else ""
    help_text = escape(f"{schema['description']}{choices}{repeat}.")
    annotation = bool if kind == "boolean" else _TYPES.get(kind, str) | None
    default = False if kind == "boolean" else None
    return inspect.Parameter(
        name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[annotation, typer.Option(option, help=help_text)],
    )


def _type(schema: Mapping[str, Any]) -> str:
    """The field's JSON type, beside null."""
    types = (choice["type"] for choice in schema.get("anyOf", [schema]))
    return str(next(name for name in types if name != "null"))


def _value(schema: Mapping[str, Any], field: str, value: Any) -> Any:
    if value is None or _type(schema) != "object":
        return value
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        raise OptionInvalid(f"The option --{field} is not JSON. Nothing was read.") from None
