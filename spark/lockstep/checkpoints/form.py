"""Check a request for an action on checkpoints. The command line and the DAG's form use the same fields.

A request is checked before anything is read or changed. Names, offsets and times are checked against patterns and against the
registry of views. The person's name and the reason are free text: they are stored and shown as they are, and are never a part
of SQL, of a command or of a path.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from lockstep.checkpoints import fields
from lockstep.checkpoints.errors import ActionRefused
from lockstep.checkpoints.fields import Action
from lockstep.checkpoints.savepoints import check_name
from lockstep.definition import View
from lockstep.definition.registry import VIEWS

# What PostgreSQL cannot store, or what would break a line of a log: control characters, line ends and halves of UTF-16 pairs.
_NO_TEXT = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]+")


@dataclass(frozen=True)
class Request:
    """One action on checkpoints, checked as far as possible without reading anything.

    Args:
        query: the view whose query is meant; None: all of them, for an action that only looks.
        name: of a savepoint; for ``fork``, the view that continues from the query's position.
        to: where a reset starts.
        by: who asks for it; any text.
        reason: why; any text.
    """

    action: Action
    query: View | None
    name: str
    to: str
    by: str
    reason: str

    @property
    def one_query(self) -> View:
        """The query, for an action on one query.

        Raises:
            ActionRefused: the request names none.
        """
        return _one(self.action, self.query)


def request(values: Mapping[str, Any]) -> Request:
    """Check the fields of a request.

    Raises:
        ActionRefused: a field is missing, unknown or malformed. Nothing was read.
    """
    texts = {name: str(values.get(name) or "") for name in ("action", "query", "name", "to", "by", "reason")}
    action = _action(texts["action"])
    query = _view(texts["query"]) if texts["query"] else None
    if action is Action.SHARE and query:
        raise ActionRefused("share is for all views that run: name no query.")
    if action not in fields.FOR_ALL_QUERIES:
        _check_target(action, _one(action, query), texts["name"], texts["to"])
    return Request(
        action=action,
        query=query,
        name=texts["name"],
        to=texts["to"],
        by=_free_text("by", texts["by"], needed=action in fields.NEEDS_PERSON),
        reason=_free_text("reason", texts["reason"], needed=action in fields.NEEDS_REASON),
    )


def _action(text: str) -> Action:
    if text not in [*Action]:
        raise ActionRefused(f"{text!r} is not an action: use one of {', '.join(Action)}.")
    return Action(text)


def _view(name: str) -> View:
    if name not in VIEWS:
        raise ActionRefused(f"There is no query {name!r}: name one of {', '.join(VIEWS)}.")
    return VIEWS[name]


def _one(action: Action, query: View | None) -> View:
    if query is None:
        raise ActionRefused(f"{action} is for one query: name it.")
    return query


def _check_target(action: Action, query: View, name: str, to: str) -> None:
    if action in (Action.SAVEPOINT, Action.RESTORE):
        check_name(name)
    if action is Action.FORK and name not in VIEWS:
        raise ActionRefused(f"There is no view {name!r} to continue from {query.name}: add its module to views/ first.")
    if action is Action.RESET and not re.fullmatch(fields.RESET_TO, to):
        raise ActionRefused(
            f"{to!r} is not where a query can begin: use earliest, gold, a time with its zone, or partition=offset,…."
        )


def _free_text(field: str, value: str, needed: bool) -> str:
    """A person's text, on one line."""
    text = _NO_TEXT.sub(" ", value).strip()
    if needed and not text:
        raise ActionRefused(
            f"{field} is {text!r}: it goes into the record, so write 1 to {fields.LONGEST_TEXT} characters."
        )
    if len(text) > fields.LONGEST_TEXT:
        raise ActionRefused(f"{field} has {len(text):,} characters: use at most {fields.LONGEST_TEXT}.")
    return text
