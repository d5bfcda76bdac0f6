"""The contracts and views of the simulation: small, and of every kind that there is."""

from datetime import timedelta
from typing import Any

from lockstep.contracts import Contract
from lockstep.definition import Event, Input, Keyed, Windowed
from lockstep.definition.joins import IntervalJoin
from lockstep.definition.keyed import Row, State
from lockstep.definition.view import MICROSECOND

SECOND = timedelta(seconds=1)
_EVENT = {"event_id": "STRING", "event_time": "TIMESTAMP", "user_id": "STRING", "amount": "BIGINT"}


def _events(name: str, partitions: int, out_of_orderness: timedelta) -> Contract:
    return Contract(
        name=name,
        topic=name,
        kind="events",
        columns=_EVENT,
        key=("user_id",),
        unique_id=("event_id",),
        event_time="event_time",
        required=("event_id", "event_time", "user_id"),
        # Longer than any view waits, and short enough for some copies to come after it.
        dedup_window=60 * SECOND,
        max_clock_skew=30 * SECOND,
        max_out_of_orderness=out_of_orderness,
        partitions=partitions,
    )


CONTRACTS = {
    "clicks": _events("clicks", 2, 2 * SECOND),
    "buys": _events("buys", 1, timedelta(milliseconds=500)),
    "accounts": Contract(
        name="accounts",
        topic="accounts",
        kind="changes",
        columns={"account_id": "STRING", "name": "STRING"},
        key=("account_id",),
        unique_id=("account_id",),
        event_time="",
        required=("account_id",),
        partitions=1,
    ),
}


def _windowed(name: str, **declared: Any) -> Windowed:
    return Windowed(
        name=name,
        input="clicks",
        # Spark's part of a windowed view is restated in the engine.
        measures={},
        columns={
            "window_start": "TIMESTAMP",
            "window_end": "TIMESTAMP",
            "user_id": "STRING",
            "clicks": "BIGINT",
            "amount": "BIGINT",
        },
        key=("window_start", "user_id"),
        **declared,
    )


PER_WINDOW = _windowed("per_window", size=10 * SECOND, slide=10 * SECOND, allowed_lateness=5 * SECOND)
HOPPING = _windowed(
    "hopping",
    size=12 * SECOND,
    slide=5 * SECOND,
    allowed_lateness=SECOND,
    policy="correct",
    correct_within=9 * SECOND,
)

GAP = 8 * SECOND


def _in_session(state: State, event: Event) -> tuple[State, list[Row]]:
    before = state or {"user_id": event.data["user_id"], "start": event.time, "clicks": 0, "amount": 0}
    more = {"clicks": before["clicks"] + 1, "amount": before["amount"] + event.data["amount"], "last": event.time}
    return before | more, []


def _end_session(state: State, _: Any) -> tuple[State, list[Row]]:
    return None, [{name: state[name] for name in ("user_id", "start", "clicks", "amount")}]


SESSIONS = Keyed(
    name="sessions",
    inputs=(Input("clicks", "user_id", ("user_id", "amount")),),
    process=_in_session,
    timer=lambda state: state["last"] + GAP,
    on_timer=_end_session,
    columns={"user_id": "STRING", "start": "TIMESTAMP", "clicks": "BIGINT", "amount": "BIGINT"},
    key=("user_id", "start"),
    allowed_lateness=5 * SECOND,
)

WITHIN = 6 * SECOND


def _pair(click: Event, buy: Event | None, number: int) -> Row:
    found = {"click": click.id, "number": number, "buy": buy.id if buy else None}
    return found | {"user_id": click.data["user_id"]}


_JOIN = IntervalJoin(left="clicks", within=WITHIN, row=_pair)
PAIRS = Keyed(
    name="pairs",
    inputs=(Input("clicks", "user_id", ("user_id",)), Input("buys", "user_id", ("user_id",))),
    process=_JOIN.process,
    timer=_JOIN.timer,
    on_timer=_JOIN.on_timer,
    columns={"user_id": "STRING", "click": "STRING", "number": "BIGINT", "buy": "STRING"},
    key=("click", "number"),
    allowed_lateness=4 * SECOND,
    policy="side_output",
    lookback=WITHIN + MICROSECOND,
)


def _account(state: State, event: Event) -> tuple[State, list[Row]]:
    state = state or {"name": None, "buys": 0, "amount": 0, "account_id": None}
    if event.is_change:
        state |= {
            "name": None if event.data["_deleted"] else event.data["name"],
            "account_id": event.data["account_id"],
        }
    else:
        more = {"buys": state["buys"] + 1, "amount": state["amount"] + event.data["amount"]}
        state |= more | {"account_id": event.data["user_id"]}
    return state, [dict(state)]


BALANCES = Keyed(
    name="balances",
    inputs=(
        Input("accounts", "account_id", ("account_id", "name"), time="_committed_at"),
        Input("buys", "user_id", ("user_id", "amount")),
    ),
    process=_account,
    columns={"account_id": "STRING", "name": "STRING", "buys": "BIGINT", "amount": "BIGINT"},
    key=("account_id",),
    allowed_lateness=3 * SECOND,
)

WINDOWED = (PER_WINDOW, HOPPING)
KEYED = (SESSIONS, PAIRS, BALANCES)
VIEWS = {view.name: view for view in (*WINDOWED, *KEYED)}
