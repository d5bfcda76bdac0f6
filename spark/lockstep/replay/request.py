"""What may be asked of a replay: the words of its file, its command line and its form. Pure; refused before anything is read.

A request names what to redo in one of three ways: ``from`` and ``to`` (event time, UTC), ``offsets`` of one topic, or
``versions`` of one table. Everything else narrows it down, or says who decides.
"""

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    StringConstraints,
    ValidationError,
    model_validator,
)

from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.errors import LockstepError

LAYERS = ("bronze", "silver", "gold")
VERSIONS = r"^(bronze|silver|gold)\.([a-z][a-z0-9_]*)@(\d+)\.\.(\d+)$"
NAME = r"^[a-z][a-z0-9_.]*$"
_FORBIDDEN = {
    "Jinja": r"\{\{|\}\}|\{%|%\}|\{#",
    "a path": r"\.\./|\.\.\\|^[~/]",
    "shell": r"[;|`$<>\\&\x00-\x1f\x7f]",
    "SQL": (
        r"--|/\*|\"|(?<!\w)'|'(?!\w)"
        r"|(?i:\b(?:drop|alter|truncate|create)\s+(?:table|view|database|schema)\b|\bunion\s+select\b|\bdelete\s+from\b"
        r"|\binsert\s+into\b|\bselect\b.+\bfrom\b|\bupdate\s+\S+\s+set\b)"
    ),
}
Name = Annotated[str, StringConstraints(pattern=NAME, max_length=100)]


class Refused(LockstepError):
    """A replay, or a step of one, that must not be; the message says why in one sentence."""


def _utc(moment: datetime) -> datetime:
    """Times without a zone are UTC."""
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _whole(spans: dict[int, tuple[int, int]]) -> dict[int, tuple[int, int]]:
    for partition, (start, end) in spans.items():
        if start >= end:
            raise ValueError(f"offsets of partition {partition} end ({end}) before they start ({start})")
    return spans


Time = Annotated[datetime, AfterValidator(_utc)]
Offsets = Annotated[dict[NonNegativeInt, tuple[NonNegativeInt, NonNegativeInt]], AfterValidator(_whole)]


class Request(BaseModel):
    """One request.

    Args:
        start: ``from``: the first window, or instant, to redo (event time, UTC).
        end: ``to``: where it ends, itself left out.
        offsets: ``{partition: [start, end)}`` of the one topic in ``topics``.
        versions: ``layer.table@first..last``: what these versions brought, both included.
        topics: streams (or their topics); empty: those that the views read, or all.
        layers: what to compute again; what lies between two of them must be named too.
        views: empty: all that read the topics.
        late: rows that came too late for a view count too; they are what ``late.<view>`` holds.
        reason: why, for the record.
        dry_run: stop after the diff, and keep nothing.
        approve: who decides after the diff: somebody ``by_hand``, or the rule that follows (``by_rule``).
        max_changed_percent: the rule: at most this share of the windows may change.
        max_changed_windows: and at most so many, when given.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)

    reason: Annotated[str, StringConstraints(strip_whitespace=True, min_length=3, max_length=300)]
    start: Time | None = Field(None, alias="from")
    end: Time | None = Field(None, alias="to")
    offsets: Offsets | None = None
    versions: Annotated[str, StringConstraints(pattern=VERSIONS)] | None = None
    topics: tuple[Name, ...] = ()
    layers: tuple[Literal["bronze", "silver", "gold"], ...] = ("gold",)
    views: tuple[Name, ...] = ()
    late: bool = False
    dry_run: bool = False
    approve: Literal["by_hand", "by_rule"] = "by_hand"
    max_changed_percent: float = Field(10.0, ge=0, le=100)
    max_changed_windows: NonNegativeInt | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        time = self.start is not None or self.end is not None
        if [time, self.offsets is not None, self.versions is not None].count(True) != 1:
            raise ValueError("give exactly one of: from and to, offsets, versions")
        if time and (self.start is None or self.end is None):
            raise ValueError("from and to belong together: give both")
        if self.start and self.end and self.start >= self.end:
            raise ValueError(f"to ({_text(self.end)}) must be later than from ({_text(self.start)})")
        if self.late and "gold" not in self.layers:
            raise ValueError("late rows are left out by views: name the layer gold to merge them")
        if self.offsets is not None and len(self.topics) != 1:
            raise ValueError("offsets are of exactly one topic: name it in topics")
        if self.versions and self.version_range[0] > self.version_range[1]:
            raise ValueError(f"versions {self.versions} end before they start")
        return self

    @property
    def version_range(self) -> tuple[int, int]:
        """The first and the last version, both included."""
        match = re.match(VERSIONS, self.versions or "")
        return (int(match[3]), int(match[4])) if match else (0, -1)

    @property
    def table(self) -> str:
        """The table of ``versions``, ``layer.name``."""
        return (self.versions or "").partition("@")[0]

    def as_dict(self) -> dict[str, Any]:
        """In the words of the file; what was not given is left out."""
        return self.model_dump(mode="json", by_alias=True, exclude_defaults=True)


class Scope(BaseModel):
    """The streams and views of a request, by name, in the order of the contracts and views."""

    streams: tuple[str, ...]
    views: tuple[str, ...]


def parse(data: Mapping[str, Any]) -> Request:
    """Read a request out of a file, a form or options; a field that is empty counts as not given.

    Raises:
        Refused: says in one sentence what is wrong with which field.
    """
    given = {name: value for name, value in data.items() if value is not None and value not in ("", [], {}, ())}
    for name, text in _texts(given):
        for what, pattern in _FORBIDDEN.items():
            if re.search(pattern, text):
                raise Refused(f"The field {name} of the replay looks like {what}, and is refused. Nothing was read.")
    try:
        request = Request.model_validate(given)
    except ValidationError as error:
        raise Refused(f"The replay is refused: {_sentence(error)}. Nothing was read.") from None
    scope(request)
    return request


def load(file: Path) -> Request:
    """Read a request file (YAML).

    Raises:
        Refused: it cannot be read, or what it asks for must not be.
    """
    try:
        data = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError) as error:
        raise Refused(f"The replay file {file} cannot be read: {error}") from None
    if not isinstance(data, dict):
        raise Refused(f"The replay file {file} must be a mapping of fields, as those in infra/replays/ are.")
    return parse(data)


def scope(request: Request) -> Scope:
    """The streams and views that the request is about.

    Raises:
        Refused: one of them is unknown, they do not fit together, or the layers leave one out that must follow.
    """
    streams = {_stream(name) for name in request.topics}
    views = {_view(name).name for name in request.views}
    if request.versions:
        layer, _, name = request.table.partition(".")
        if layer == "gold":
            views |= {_view(name).name}
        else:
            streams |= {_stream(name.removesuffix("_changes") if name not in CONTRACTS else name)}
    apart = sorted(name for name in views if streams and not streams & set(VIEWS[name].streams))
    if apart:
        raise Refused(
            f"The view {apart[0]} reads none of the topics {', '.join(sorted(streams))}: leave one of them out."
        )
    if not streams:
        streams = {stream for name in views for stream in VIEWS[name].streams} or set(CONTRACTS)
    if not views:
        views = {view.name for view in readers(streams)}
    _layers(request, streams, views)
    return Scope(
        streams=tuple(name for name in CONTRACTS if name in streams),
        views=tuple(name for name in VIEWS if name in views) if "gold" in request.layers else (),
    )


def readers(streams: Iterable[str]) -> list[View]:
    """The views that read any of the streams."""
    wanted = set(streams)
    return [view for view in VIEWS.values() if wanted & set(view.streams)]


def _layers(request: Request, streams: set[str], views: set[str]) -> None:
    chosen = [layer for layer in LAYERS if layer in request.layers]
    first, last = LAYERS.index(chosen[0]), LAYERS.index(chosen[-1])
    if missing := [layer for layer in LAYERS[first : last + 1] if layer not in chosen]:
        raise Refused(f"The layers {', '.join(chosen)} leave out {missing[0]}, which lies between them: name it too.")
    if "silver" not in chosen:
        return
    behind = sorted(view.name for view in readers(streams) if "gold" not in chosen or view.name not in views)
    if behind:
        raise Refused(
            f"When silver is replayed, every view over it is too, or it would not fit any more: add "
            f"{'the layer gold' if 'gold' not in chosen else f'the view {behind[0]}, or name no view'}."
        )


def _stream(name: str) -> str:
    found = name if name in CONTRACTS else next((c.name for c in CONTRACTS.values() if c.topic == name), None)
    if found is None:
        raise Refused(f"There is no topic {name}: name one of {', '.join(CONTRACTS)}. Nothing was read.")
    return found


def _view(name: str) -> View:
    if name not in VIEWS:
        raise Refused(f"There is no view {name}: name one of {', '.join(VIEWS)}. Nothing was read.")
    return VIEWS[name]


def _texts(value: Any, name: str = "") -> Iterable[tuple[str, str]]:
    """Every text in the request, the names of the fields too, with the field that it stands in."""
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _texts(key, name or "names")
            yield from _texts(inner, name or str(key))
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from _texts(inner, name)
    elif isinstance(value, str):
        yield name, value


def _sentence(error: ValidationError) -> str:
    """The first of what is wrong; the value itself is not repeated."""
    first = error.errors(include_url=False, include_input=False)[0]
    field = ".".join(str(part) for part in first["loc"])
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] == "extra_forbidden":
        names = ", ".join(f.alias or name for name, f in Request.model_fields.items())
        return f"there is no field {field}; the fields are {names}"
    return f"{field}: {message[0].lower()}{message[1:]}" if field else message


def _text(moment: datetime) -> str:
    return f"{moment:%F %T} UTC"
