"""Match the changes of a table with subscriptions (events), as of the change's own time. Pure.

A change waits until all subscriptions before its time are known. One that comes later than that is matched at once. So the
matches do not depend on how changes and events interleave.

A state is ``{"passed": time or None, "held": {who: [[time, on], ...]}, "waiting": [[time, change], ...]}``; a view may add keys.
"""

from bisect import bisect_left, insort
from collections.abc import Callable
from datetime import datetime
from typing import Any

# Who subscribed, and the change, to output rows.
Match = Callable[[list[str], Any], list[dict[str, Any]]]


def empty() -> dict[str, Any]:
    """The state of a machine that knows no subscription and no change."""
    return {"passed": None, "held": {}, "waiting": []}


def switch(state: dict[str, Any], who: str, time: datetime, on: bool) -> None:
    """From ``time`` on, ``who`` has a subscription (``on``) or none. Call it in the order of the events."""
    state["passed"] = time
    turns = state["held"].get(who, [])
    if on != bool(turns and turns[-1][1]):
        state["held"][who] = [*turns, [time, on]]


def match(state: dict[str, Any], time: datetime, change: Any, to_rows: Match) -> list[dict[str, Any]]:
    """The rows of a change at ``time``, if it is known who had subscribed by then; else it waits."""
    if state["passed"] is not None and time <= state["passed"]:
        return to_rows(subscribers(state, time), change)
    insort(state["waiting"], [time, change], key=lambda waiting: waiting[0])
    return []


def timer(state: dict[str, Any]) -> datetime | None:
    """When the first of the waiting changes can be matched."""
    return state["waiting"][0][0] if state["waiting"] else None


def on_timer(state: dict[str, Any], at: datetime, to_rows: Match) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """All subscriptions before ``at`` are known: the rows of the changes that waited for them."""
    state["passed"] = at
    due = [change for time, change in state["waiting"] if time <= at]
    state["waiting"] = state["waiting"][len(due) :]
    return state, [row for change in due for row in to_rows(subscribers(state, at), change)]


def subscribers(state: dict[str, Any], time: datetime) -> list[str]:
    """Who had a subscription at the instant before ``time``."""
    return [who for who, turns in state["held"].items() if _is_on(turns, time)]


def _is_on(turns: list[list[Any]], time: datetime) -> bool:
    index = bisect_left(turns, time, key=lambda turn: turn[0])
    return index > 0 and turns[index - 1][1]
