"""Validate a view's definition before anything of it starts. Pure: :mod:`.trial` asks Spark."""

import re
from collections.abc import Iterator
from dataclasses import fields
from datetime import timedelta
from typing import get_args

from lockstep.contracts import CONTRACTS
from lockstep.contracts.contract import not_a_column
from lockstep.definition.columns import CHANGE
from lockstep.definition.keyed import Input, Keyed
from lockstep.definition.view import Definition, Policy
from lockstep.definition.windowed import Windowed

# Names of tables, in Spark and in file paths.
NAME = r"[a-z][a-z0-9_]{0,99}"
ZERO = timedelta(0)
_WINDOW = ("window_start", "window_end")


def problems(view: Definition) -> list[str]:
    """Every reason why the view cannot run as it is declared, each with its fix; empty for a sound one."""
    reasons = [*_output(view), *_lateness(view), *_streams(view)]
    if isinstance(view, Windowed):
        reasons += _windowed(view)
    if isinstance(view, Keyed):
        reasons += _keyed(view)
    return reasons


def _output(view: Definition) -> Iterator[str]:
    if not re.fullmatch(NAME, view.name):
        yield f"the name {view.name!r} cannot be a table's: use small letters, digits and underscores"
    if not view.key:
        yield "it has no key: name the columns that identify a row of its output"
    for name in view.key:
        if name not in view.output_columns:
            yield f"the key {name} is not one of its columns ({', '.join(view.output_columns)}): add it, or leave it out"
    for name in view.column_descriptions:
        if name not in view.output_columns:
            yield not_a_column(name, view.output_columns)
    for name, error in view.approximate.items():
        if name in view.key:
            yield f"its key {name} is approximate, so no row could be compared with another: choose an exact key"
        for column in (name, error):
            if column not in view.output_columns:
                yield f"its approximate column {column} is not one of its columns: declare it"


def _lateness(view: Definition) -> Iterator[str]:
    if not isinstance(view.allowed_lateness, timedelta) or view.allowed_lateness < ZERO:
        yield (
            "it has no watermark: set allowed_lateness to how long after it happened a row may arrive, such as "
            "timedelta(seconds=5)"
        )
        return
    if view.policy not in get_args(Policy):
        yield f"there is no policy {view.policy!r} for late rows: choose {', '.join(get_args(Policy))}"
    if view.policy == "correct":
        if isinstance(view, Keyed):
            yield "a machine's rows are final, so late rows cannot correct them: choose ignore or side_output"
        elif view.correct_within is None or view.correct_within <= view.allowed_lateness:
            yield "the policy correct needs a second, longer limit: set correct_within above allowed_lateness"
    elif view.correct_within is not None:
        yield f"correct_within means nothing under the policy {view.policy}: leave it out, or choose correct"


def _streams(view: Definition) -> Iterator[str]:
    if not view.streams:
        yield "it reads nothing: name a stream"
    for name in view.streams:
        if name not in CONTRACTS:
            yield f"there is no stream {name}: name one of {', '.join(CONTRACTS)}"


def _windowed(view: Windowed) -> Iterator[str]:
    for name in _WINDOW:
        if view.columns.get(name) != "TIMESTAMP":
            yield f"its rows must say which window they are of: declare the column {name} TIMESTAMP"
    if view.key and "window_start" not in view.key:
        yield "a key has a row in every window: add window_start to the key"
    if view.size <= ZERO or view.slide <= ZERO:
        yield "a window must have a length, and the next one must start later: set size and slide above zero"
    if isinstance(view.allowed_lateness, timedelta) and view.state_kept <= view.limit:
        yield (
            f"the engine would forget a window's state after {view.state_kept}, while rows may still count for "
            f"{view.limit}: set state_kept above that"
        )
    contract = CONTRACTS.get(view.input)
    if contract is None:
        return
    if contract.kind == "changes":
        yield f"{view.input} is a table's changes, which correct each other: read it with a Keyed view"
    elif view.event_time not in contract.columns:
        yield f"{view.input} has no column {view.event_time}: set event_time to {contract.event_time}"


def _keyed(view: Keyed) -> Iterator[str]:
    for read in view.inputs:
        yield from _input(read)
    if view.lookback is not None and view.lookback <= ZERO:
        yield "lookback is zero, as if a row depended on no event: set lookback above zero, or leave it out"
    defaults = {field.name: field.default for field in fields(Keyed)}
    has_timer, has_action = view.timer is not defaults["timer"], view.on_timer is not defaults["on_timer"]
    if has_timer and not has_action:
        yield "a timer at which nothing happens would come again and again: give on_timer too"
    if has_action and not has_timer:
        yield "on_timer would never be called: give timer too"
    if has_timer and view.map_state:
        yield "a timer has no event, so nobody knows which entries of map_state it touches: leave one of them out"


def _input(read: Input) -> Iterator[str]:
    if bool(read.key) == bool(read.keys):
        yield f"it is not clear which machines get a row of {read.stream}: set either key or keys of its input"
    contract = CONTRACTS.get(read.stream)
    if contract is None:
        return
    known = (*contract.columns, *CHANGE) if read.is_table else contract.columns
    if unknown := [name for name in read.columns if name not in known]:
        yield f"{read.stream} has no column {unknown[0]}: its columns are {', '.join(known)}"
    if read.is_table and read.time == "event_time" and "event_time" not in contract.columns:
        yield f"{read.stream} has no event_time: set the input's time to _committed_at, or to a time of the row"
