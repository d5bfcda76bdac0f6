"""Read a request from a file, a form or options, and find the streams and views that it is about.

Names are checked against the registries. A reason is text, and any text is allowed. A request is refused before a table is read.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.replay.request import LAYERS, ReplayRefused, Request


class Scope(BaseModel):
    """The streams and views of a request, by name, in the order of the contracts and views."""

    model_config = ConfigDict(frozen=True)

    streams: tuple[str, ...]
    views: tuple[str, ...]


def parse(fields: Mapping[str, Any]) -> Request:
    """Read a request from the fields of a file, a form or a command line. An empty field counts as not given.

    Raises:
        ReplayRefused: says in one sentence what is wrong with which field. The value itself is not repeated.
    """
    given = {name: value for name, value in fields.items() if value is not None and value not in ("", [], {}, ())}
    try:
        request = Request.model_validate(given)
    except ValidationError as error:
        raise ReplayRefused(f"The replay is refused: {_sentence(error)}. Nothing was read.") from None
    scope(request)
    return request


def load(file: Path) -> Request:
    """Read a request file (YAML).

    Raises:
        ReplayRefused: the file cannot be read, or its request is not allowed.
    """
    try:
        fields = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise ReplayRefused(f"The replay file {file} cannot be read: {error}") from None
    if not isinstance(fields, dict):
        raise ReplayRefused(f"The replay file {file} must be a mapping of fields, as docs/operations/replay.md shows.")
    return parse(fields)


def scope(request: Request) -> Scope:
    """The streams and views that the request is about.

    Raises:
        ReplayRefused: a name is unknown, the names do not fit together, or a layer or view is missing that must follow.
    """
    streams = {_stream(name) for name in request.topics}
    views = {_view(name).name for name in request.views}
    if request.versions:
        layer, _, name = request.table.partition(".")
        if layer == "gold":
            views |= {_view(name).name}
        else:
            streams |= {_stream(name.removesuffix("_changes") if name not in CONTRACTS else name)}
    unrelated = sorted(name for name in views if streams and not streams & set(VIEWS[name].streams))
    if unrelated:
        raise ReplayRefused(
            f"The view {unrelated[0]} reads none of the topics {', '.join(sorted(streams))}: leave one of them out."
        )
    if not streams:
        streams = {stream for name in views for stream in VIEWS[name].streams} or set(CONTRACTS)
    if not views:
        views = {view.name for view in readers(streams)}
    _check_layers(request, streams, views)
    return Scope(
        streams=tuple(name for name in CONTRACTS if name in streams),
        views=tuple(name for name in VIEWS if name in views) if "gold" in request.layers else (),
    )


def readers(streams: Iterable[str]) -> list[View]:
    """The views that read any of the streams."""
    wanted = set(streams)
    return [view for view in VIEWS.values() if wanted & set(view.streams)]


def _check_layers(request: Request, streams: set[str], views: set[str]) -> None:
    named = [layer for layer in LAYERS if layer in request.layers]
    first, last = LAYERS.index(named[0]), LAYERS.index(named[-1])
    if missing := [layer for layer in LAYERS[first : last + 1] if layer not in named]:
        raise ReplayRefused(
            f"The layers {', '.join(named)} leave out {missing[0]}, which lies between them: name it too."
        )
    if "silver" not in named:
        return
    left_out = sorted(view.name for view in readers(streams) if "gold" not in named or view.name not in views)
    if left_out:
        raise ReplayRefused(
            f"When silver is replayed, every view that reads it must be replayed too: add "
            f"{'the layer gold' if 'gold' not in named else f'the view {left_out[0]}, or name no view'}."
        )


def _stream(name: str) -> str:
    stream = name if name in CONTRACTS else next((c.name for c in CONTRACTS.values() if c.topic == name), None)
    if stream is None:
        raise ReplayRefused(f"There is no topic {name}: name one of {', '.join(CONTRACTS)}. Nothing was read.")
    return stream


def _view(name: str) -> View:
    if name not in VIEWS:
        raise ReplayRefused(f"There is no view {name}: name one of {', '.join(VIEWS)}. Nothing was read.")
    return VIEWS[name]


def _sentence(error: ValidationError) -> str:
    """The first thing that is wrong. Neither values nor names that are no names are repeated."""
    first = error.errors(include_url=False, include_input=False)[0]
    # A key of a mapping that was given, such as a partition, is a part of the place too, and may be any text.
    field = ".".join(str(part) for part in first["loc"] if re.fullmatch(r"[a-z0-9_]{1,100}", str(part)))
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        names = ", ".join(field.alias or name for name, field in Request.model_fields.items())
        return f"there is no field {field or 'of such a name'}; the fields are {names}"
    return f"{field}: {message[0].lower()}{message[1:]}" if field else message
