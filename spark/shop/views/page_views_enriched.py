"""Page views with the user as of the time of the view: each change of a user is a version, valid from its ``updated_at``.

``version`` is the position of the version in the source's log: ``_lsn`` of its row in ``silver.users_changes``. A version that
arrives after views of its time corrects their rows. For that, the state keeps a user's views with the versions.
"""

from bisect import bisect_right
from datetime import timedelta
from typing import Any

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.states import instant

_NOBODY = {"name": None, "age": None, "version": None, "valid_from": None}


def process(state: Any, event: Event) -> tuple[Any, list[dict[str, Any]]]:
    """The state is a user's versions ``[from, row]`` and views ``[time, id, user, page]``, sorted by time."""
    state = state or {"versions": [], "views": []}
    if not event.is_change:
        view = [event.time, event.id, event.data["user_id"], event.data["page"]]
        state["views"].append(view)
        return state, [_row(view, _as_of(state["versions"], event.time))]
    start, version = _version(event)
    versions = state["versions"]
    index = _index_after(versions, start)
    # Of two changes with the same time, the later one in the source's log is the version.
    if index > 0 and versions[index - 1][0] == start:
        index -= 1
        versions[index] = [start, version]
    else:
        versions.insert(index, [start, version])
    until = versions[index + 1][0] if index + 1 < len(versions) else None
    touched = (view for view in state["views"] if start <= view[0] and (until is None or view[0] < until))
    return state, [_row(view, version) for view in touched]


def _version(event: Event) -> tuple[Any, dict[str, Any]]:
    data = event.data
    if data["_deleted"]:
        # The row has the time of its last change. Only the commit has the time of the deletion.
        return event.time, _NOBODY
    start = instant(data["updated_at"])
    return start, {"name": data["name"], "age": data["age"], "version": data["_lsn"], "valid_from": start}


def _index_after(versions: list[Any], time: Any) -> int:
    return bisect_right(versions, time, key=lambda version: version[0])


def _as_of(versions: list[Any], time: Any) -> dict[str, Any]:
    index = _index_after(versions, time)
    return versions[index - 1][1] if index else _NOBODY


def _row(view: list[Any], version: dict[str, Any]) -> dict[str, Any]:
    return dict(zip(("event_time", "event_id", "user_id", "page"), view, strict=True)) | version


VIEW = Keyed(
    name="page_views_enriched",
    description="Each page view with the customer as of its time.",
    inputs=(
        Input("page_views", "user_id", ("user_id", "page")),
        Input("users", "user_id", ("name", "age", "updated_at", "_lsn"), time="_committed_at"),
    ),
    process=process,
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "user_id": "STRING",
        "page": "STRING",
        "name": "STRING",
        "age": "INT",
        "version": "BIGINT",
        "valid_from": "TIMESTAMP",
    },
    column_descriptions={
        "version": (
            "The version of the customer that was valid then: its _lsn in silver.users_changes; null: there was none."
        ),
        "valid_from": "Since when that version is valid (UTC); null without one.",
    },
    key=("event_id",),
    allowed_lateness=timedelta(seconds=10),
)
