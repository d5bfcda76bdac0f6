"""Who is to be told of a table's changes: subscriptions (events) met with changes, as of the change's own time. Pure.

A change waits until all that was subscribed before its time is known; one that comes later than that is met at once, because
what was subscribed before it can no longer change. So who is told does not depend on how changes and events interleave.

A state is ``{"passed": time or None, "held": {who: [[time, on], ...]}, "waiting": [[time, what], ...]}``, and may hold more.
"""

from bisect import bisect_left, insort
from collections.abc import Callable
from datetime import datetime
from typing import Any

Tell = Callable[[list[str], Any], list[dict[str, Any]]]


def nothing() -> dict[str, Any]:
    """The state of a machine that knows no subscription and no change."""
    return {"passed": None, "held": {}, "waiting": []}


def switch(state: dict[str, Any], who: str, time: datetime, on: bool) -> None:
    """From ``time`` on, ``who`` subscribes, or no longer. Called in the order of the events."""
    state["passed"] = time
    state["held"].setdefault(who, []).append([time, on])


def meet(state: dict[str, Any], time: datetime, what: Any, tell: Tell) -> list[dict[str, Any]]:
    """A change of ``time``: its rows, if it is known who subscribed before; else it waits."""
    if state["passed"] is not None and time <= state["passed"]:
        return tell(subscribers(state, time), what)
    insort(state["waiting"], [time, what], key=lambda waiting: waiting[0])
    return []


def timer(state: dict[str, Any]) -> datetime | None:
    """When the first of the waiting changes can be met."""
    return state["waiting"][0][0] if state["waiting"] else None


def on_timer(state: dict[str, Any], at: datetime, tell: Tell) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Everything before ``at`` is known: the rows of what waited for it."""
    state["passed"] = at
    met = [what for time, what in state["waiting"] if time <= at]
    state["waiting"] = state["waiting"][len(met) :]
    return state, [row for what in met for row in tell(subscribers(state, at), what)]


def subscribers(state: dict[str, Any], time: datetime) -> list[str]:
    """Who subscribed at the instant before ``time``."""
    return [who for who, turns in state["held"].items() if _is_on(turns, time)]


def _is_on(turns: list[list[Any]], time: datetime) -> bool:
    place = bisect_left(turns, time, key=lambda turn: turn[0])
    return place > 0 and turns[place - 1][1]
