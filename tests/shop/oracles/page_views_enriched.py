"""Page views with their user: each view is compared with all changes of its user."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from tests.shop.oracles.changes import Change, history
from tests.shop.oracles.record import Record, accepted, on_time, parsed
from tests.shop.oracles.tokens import token


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """Every page view, with the newest version of its user that was valid then, and committed within 30 days or the first.

    What was known then is the newest of these that was committed by then.
    """
    changes = history(records["users"], ("user_id",))
    result = []
    for record in on_time(accepted(records["page_views"]), 10):
        view = record.value or {}
        time = parsed(view["event_time"])
        mine = [c for c in changes if (c.after or c.before or {})["user_id"] == view["user_id"]]
        valid = [c for c in mine if _start(c) <= time and (c is mine[0] or c.committed - time <= timedelta(days=30))]
        best = max(valid, key=lambda c: (_start(c), c.place), default=None)
        row = {"event_id": view["event_id"], "event_time": time, "user_id": view["user_id"], "page": view["page"]}
        known = max((c for c in valid if c.committed <= time), key=lambda c: (_start(c), c.place), default=None)
        of_known = {f"known_{name}": _version(known)[name] for name in ("version", "age")}
        result.append(row | _version(best) | of_known)
    return result


def _start(change: Change) -> Any:
    return change.committed if change.after is None else parsed(change.after["updated_at"])


def _version(change: Change | None) -> dict[str, Any]:
    if change is None or change.after is None:
        return {"name": None, "age": None, "version": None, "valid_from": None}
    user = change.after
    return {
        "name": token(user["name"], user["user_id"]),
        "age": user["age"],
        "version": change.place[1],
        "valid_from": parsed(user["updated_at"]),
    }
