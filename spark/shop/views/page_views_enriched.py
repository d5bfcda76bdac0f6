"""Page views with the user as of the time of the view: each change of a user is a version, valid from its ``updated_at``.

It is bitemporal. ``version`` was true then: it is the position of the version in the source's log, ``_lsn`` of its row in
``silver.users_changes``. A version that arrives after views of its time corrects their rows, if it was committed at most
:data:`CORRECTED_FOR` after them. A user's first version counts whenever it was committed: a table is often loaded long after its
rows were written. ``known_version`` was known then: the same of the versions that were committed by the time of the view,
whenever they were read. Where it is another one, the row was corrected since.
"""

from datetime import datetime, timedelta
from typing import Any

from lockstep.definition import Event, Input, Keyed, MapState
from lockstep.definition.states import instant

# How long after a page view a change of its user may be committed and still correct the row.
CORRECTED_FOR = timedelta(days=30)
# The state has a user's views for twice as long: so far may the two topics be read apart.
REMEMBERED_FOR = 2 * CORRECTED_FOR
_NOBODY = {"name": None, "age": None, "version": None, "valid_from": None}
# Valid from, the time from which views have it, the time from which it was known and valid, and the columns of the row.
_Version = list[Any]
_TRUE, _KNOWN, _COLUMNS = 1, 2, 3


def process(state: Any, event: Event) -> tuple[Any, list[dict[str, Any]]]:
    """The state is a user's versions by ``valid_from`` and the remembered views, by id: ``[time, page]``."""
    state = state or {"versions": [], "views": {}}
    versions: list[_Version] = state["versions"]
    if not event.is_change:
        view = state["views"][event.id] = [event.time, event.data["page"]]
        row = _row(event.data["user_id"], event.id, view, versions)
        return state | {"versions": _asked_since(versions, event.time - REMEMBERED_FOR)}, [row]
    version = _version(event, is_first=not versions)
    # Of two changes with the same time, the later one in the source's log comes last.
    versions = sorted([*versions, version], key=lambda known: known[0])
    rows = [
        _row(event.id, view_id, view, versions)
        for view_id, view in state["views"].items()
        if any(_as_of(versions, view[0], axis) is version for axis in (_TRUE, _KNOWN))
    ]
    return state | {"versions": versions}, rows


def _touched(event: Event) -> tuple[str] | None:
    return None if event.is_change else (event.id,)


def _is_over(view: list[Any], event: Event) -> bool:
    time: datetime = view[0]
    return time <= event.time - REMEMBERED_FOR


def _version(event: Event, *, is_first: bool) -> _Version:
    data = event.data
    if data["_deleted"]:
        # The row has the time of its last change. Only the commit has the time of the deletion.
        return [event.time, event.time, event.time, _NOBODY]
    start = instant(data["updated_at"])
    since = start if is_first else max(start, event.time - CORRECTED_FOR)
    columns = {"name": data["name"], "age": data["age"], "version": data["_lsn"], "valid_from": start}
    return [start, since, max(start, event.time), columns]


def _as_of(versions: list[_Version], time: Any, axis: int) -> _Version | None:
    """The newest version that was true at a time, or known then."""
    return next((version for version in reversed(versions) if version[axis] <= time), None)


def _asked_since(versions: list[_Version], time: Any) -> list[_Version]:
    """Those that a view at ``time`` or later may have: the one that was known then, and what is valid from later on.

    No version is known before it is true, so the one that was true then is among them. Versions in between were committed since.
    """
    first = next((n for n in reversed(range(len(versions))) if versions[n][_KNOWN] <= time), 0)
    return versions[first:]


def _row(user_id: str, view_id: str, view: list[Any], versions: list[_Version]) -> dict[str, Any]:
    time, page = view
    columns = {"event_time": time, "event_id": view_id, "user_id": user_id, "page": page}
    true, known = (
        version[_COLUMNS] if (version := _as_of(versions, time, axis)) else _NOBODY for axis in (_TRUE, _KNOWN)
    )
    return columns | true | {"known_version": known["version"], "known_age": known["age"]}


VIEW = Keyed(
    name="page_views_enriched",
    description="Each page view with the customer as of its time: what was true then, and what was known then.",
    inputs=(
        Input("page_views", "user_id", ("user_id", "page")),
        Input("users", "user_id", ("name", "age", "updated_at", "_lsn"), time="_committed_at"),
    ),
    process=process,
    map_state=MapState("views", _touched, _is_over),
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "user_id": "STRING",
        "page": "STRING",
        "name": "STRING",
        "age": "INT",
        "version": "BIGINT",
        "valid_from": "TIMESTAMP",
        "known_version": "BIGINT",
        "known_age": "INT",
    },
    column_descriptions={
        "version": (
            "The version of the customer that was valid then: its _lsn in silver.users_changes; null: there was none."
        ),
        "valid_from": "Since when that version is valid (UTC); null without one.",
        "known_version": (
            "The version of the customer that was known then: of those committed by that time, the one that was valid; null: "
            "there was none. Where it is not version, the row was corrected since."
        ),
        "known_age": "The age in years, as it was known then.",
    },
    # With its time, so that a MERGE reads only the files of its times.
    key=("event_time", "event_id"),
    allowed_lateness=timedelta(seconds=10),
)
