"""What may be asked of the checkpoints, and by which words: the same for the command line and for the DAG's form.

Everything is looked at before anything is read or touched. Free text only ever becomes a value, never a part of SQL, of a command
or of a path; and what looks like one of these is refused all the same.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lockstep.checkpoints import compatible, forks, inspection, overview, resets, savepoints, verify
from lockstep.checkpoints.errors import Refused
from lockstep.definition import View
from lockstep.definition.registry import VIEWS, chosen
from lockstep.live import generations
from lockstep.session import connect

if TYPE_CHECKING:
    from lockstep.settings import Settings

ACTIONS = ("list", "verify", "inspect", "savepoint", "restore", "reset", "fork", "compatible")
_CHANGES = ("savepoint", "restore", "reset", "fork")
_TEXT = re.compile(r"[\w .,:'()+#@/-]{1,200}")
_TO = re.compile(r"[\w.:,=+-]{1,2000}")


@dataclass(frozen=True)
class Request:
    """One thing to do, checked as far as it can be without looking at anything.

    Args:
        query: the view whose query is meant; None: all, where the action only looks.
        name: of a savepoint; for ``fork`` the view that goes on from the query's point.
        to: where a reset begins.
    """

    action: str
    query: View | None
    name: str
    to: str
    by: str
    why: str


def request(said: Mapping[str, Any]) -> Request:
    """Check what was asked for.

    Raises:
        Refused: a field is missing, unknown or not plain; nothing was looked at yet.
    """
    action, query, name, to, by, why = (str(said.get(f) or "") for f in ("action", "query", "name", "to", "by", "why"))
    if action not in ACTIONS:
        raise Refused(f"{action!r} is not an action: use one of {', '.join(ACTIONS)}.")
    if query and query not in VIEWS:
        raise Refused(f"There is no query {query!r}: name one of {', '.join(VIEWS)}.")
    if not query and action not in ("list", "verify", "compatible"):
        raise Refused(f"{action} is for one query: name it.")
    if action in ("savepoint", "restore") and not savepoints.NAME.fullmatch(name):
        raise Refused(f"{name!r} is no name for a savepoint: use small letters, digits, - and _, at most 63.")
    if action == "fork" and name not in VIEWS:
        raise Refused(f"There is no view {name!r} to go on from {query}: add its module to views/ first.")
    if action == "reset" and not _TO.fullmatch(to):
        raise Refused(
            f"{to!r} is not where a query can begin: use earliest, a time with its zone, or partition=offset,…."
        )
    for field, text in {"by": by, "why": why}.items():
        if action in _CHANGES and (not _TEXT.fullmatch(text) or ".." in text):
            raise Refused(
                f"{field} is {text!r}: use one plain line of letters, digits and .,:'()+#@/- (1 to 200 of them)."
            )
    return Request(action, VIEWS[query] if query else None, name, to, by, why)


def carry_out(settings: "Settings", asked: Request, run_id: str | None = None) -> list[str]:
    """Do it, and say what was done, a line for each thing.

    Args:
        run_id: of the task that asks; when it is run again, it changes nothing more.

    Raises:
        LockstepError: it was refused, and why; a request that only looks says what it found before it is raised.
    """
    views = [asked.query] if asked.query else chosen(settings.views)
    if asked.action == "list":
        return [str(one) for one in overview.overview(settings, views)]
    if asked.action == "verify":
        return [line for view in views for line in verified(settings, view)]
    with connect(settings, "checkpoints") as spark:
        if asked.action == "compatible":
            return [str(compatible.verdict(spark, settings, view)) for view in views]
        view = views[0]
        if asked.action == "inspect":
            return [str(one) for one in inspection.stores(spark, settings, view)]
        if asked.action == "reset":
            planned = resets.plan(spark, settings, view, asked.to)
            number = resets.reset(settings, planned, asked.why, asked.by, run_id)
            return [f"{planned}: generation {number} begins."]
        if asked.action == "savepoint":
            generation = generations.get(settings, view.name)
            saved = savepoints.take(spark, settings, generation, asked.name, asked.by, run_id)
            return [
                f"{saved.reference}: batch {saved.batch} of generation {saved.generation}, {len(saved.files)} files saved."
            ]
        if asked.action == "fork":
            return [forks.fork(spark, settings, view, VIEWS[asked.name], asked.why, asked.by, run_id)]
    number = forks.restore(settings, view, asked.name, asked.why, asked.by, run_id)
    return [f"{view.name}: generation {number} begins, from savepoint {asked.name}."]


def verified(settings: "Settings", view: View) -> list[str]:
    """What is wrong with the query's checkpoint, a line for each thing, or one line that says that it is whole."""
    generation = generations.get(settings, view.name)
    found = verify.verify(settings, generation)
    if not found:
        return [f"whole   {view.name}: generation {generation.number}"]
    return [
        f"{'BROKEN ' if problem.body is None else 'mends  '} {view.name}: generation {generation.number}: {problem}"
        for problem in found
    ]
