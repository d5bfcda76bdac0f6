"""Views that read the results of other views: what a stream of results must declare, and which views a view is made from. Pure.

The stream of a view's results is a stream of changes (:class:`~lockstep.contracts.Contract`, ``view``): a row appears when it is
final in gold, and changes or is deleted only where a replay, its undo, a backfill or an erasure changes final rows.
"""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from lockstep.contracts import CONTRACTS
from lockstep.definition.view import Definition, Output

if TYPE_CHECKING:
    from lockstep.contracts import Contract

# Types whose values are the same after JSON: what is compared and sent are texts.
_EXACT = re.compile(r"(STRING|BOOLEAN|TINYINT|SMALLINT|INT|BIGINT|FLOAT|DOUBLE|DATE|TIMESTAMP|DECIMAL\(\d+, ?\d+\))")
Views = Mapping[str, Definition]


def problems(contract: "Contract", views: Views) -> list[str]:
    """Every reason why a stream cannot have the results of its view, each with its fix; empty for a sound one, and for others.

    Args:
        views: the views of the project, by name.
    """
    if not contract.view:
        return []
    view = views.get(contract.view)
    if view is None:
        return [
            f"it has the results of the view {contract.view}, and there is none of this name that can be loaded: correct the "
            "name or the view, or remove the stream and what reads it"
        ]
    if circle := _circle(view, views):
        return [
            f"the view {view.name} would read its own results ({' → '.join(circle)}), and could never begin: let one of them "
            "read something else"
        ]
    return [
        *_problems_of_rows(contract, view),
        *_problems_of_columns(contract, view),
        *_problems_of_subject(contract, view),
    ]


def problems_of_inputs(view: Definition, views: Views) -> list[str]:
    """Why streams of results that a view reads cannot be, and how to correct each."""
    contracts = (CONTRACTS[stream] for stream in view.streams if stream in CONTRACTS)
    return [f"its stream {c.name} is refused: {reason}" for c in contracts for reason in problems(c, views)]


def made_from(view: Definition) -> tuple[str, ...]:
    """The names of the views whose results a view reads."""
    contracts = (CONTRACTS[stream] for stream in view.streams if stream in CONTRACTS)
    return tuple(dict.fromkeys(contract.view for contract in contracts if contract.view))


def _circle(view: Definition, views: Views) -> tuple[str, ...]:
    """The names of the views from a view back to itself, each with the one whose results it reads after it; empty: none."""
    paths: list[tuple[str, ...]] = [(view.name,)]
    seen: set[str] = set()
    while paths:
        path = paths.pop()
        for name in made_from(views[path[-1]]):
            if name == view.name:
                return (*path, name)
            if name in views and name not in seen:
                seen.add(name)
                paths.append((*path, name))
    return ()


def _problems_of_rows(contract: "Contract", view: Definition) -> Iterator[str]:
    if view.upserts:
        yield (
            f"the rows of {view.name} are never final, because it reads tables, and only final rows are published: read what "
            f"it reads ({', '.join(view.streams)})"
        )
    if contract.unique_id != view.key:
        names = [f"({', '.join(of)})" for of in (contract.unique_id, view.key)]
        yield f"its unique_id is {names[0]}, and the key of {view.name} is {names[1]}: make them the same"


def _problems_of_columns(contract: "Contract", view: Definition) -> Iterator[str]:
    there = view.output_columns
    for name, kind in contract.columns.items():
        if name not in there:
            yield f"{view.name} has no column {name}: its columns are {', '.join(there)}"
        elif kind != there[name]:
            yield f"its column {name} is {kind}, and that of {view.name} is {there[name]}: make it the same"
        elif not _EXACT.fullmatch(kind):
            yield f"its column {name} is {kind}, and only values that are not nested are published: leave it out"
    times = ("window_start", "window_end") if view.output is Output.WINDOWS else (view.time_column,)
    for name in times:
        if name not in contract.columns:
            yield f"it must have the column {name}, by which it is known which rows are final: add {name} TIMESTAMP"


def _problems_of_subject(contract: "Contract", view: Definition) -> Iterator[str]:
    subjects = {CONTRACTS[stream].subject for stream in view.streams if stream in CONTRACTS} - {""}
    for name in sorted(subjects):
        if name in contract.columns and not contract.subject:
            yield f'its rows have {name}, which says whom the rows of {view.name} are about: set subject="{name}"'
    if contract.subject and not subjects:
        yield (
            f"its subject is {contract.subject}, and no stream of {view.name} has one: an erasure would leave the person in "
            f"{view.name}, and the rows would come again from there: set the subject of {', '.join(view.streams)} too, or leave "
            "it out here"
        )
