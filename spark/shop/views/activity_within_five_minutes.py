"""Activity within five minutes: for each event of a user, how many events the user had in the five minutes up to it.

Each event has its own sliding window ``(event - 5 min, event]``, which counts the event itself. Of two events at one instant, the
one with the smaller id comes first.
"""

from datetime import datetime, timedelta

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.keyed import Row, State

WINDOW = timedelta(minutes=5)
COLUMNS = ("event_id", "user_id")


def process(state: State, event: Event) -> tuple[State, list[Row]]:
    """The state is the times of the user's events in the window."""
    times = [time for time in state or [] if event.time - time < WINDOW] + [event.time]
    row = {
        "user_id": event.data["user_id"],
        "event_id": event.data["event_id"],
        "stream": event.stream,
        "events": len(times),
    }
    return times, [row]


def timer(state: State) -> datetime:
    """When the window of the last event is empty, the user can be forgotten."""
    last: datetime = state[-1]
    return last + WINDOW


def on_timer(_: State, __: datetime) -> tuple[State, list[Row]]:
    """Forget the user: no event is left in the window."""
    return None, []


VIEW = Keyed(
    name="activity_within_five_minutes",
    description="For each event of a user, how many events the user had in the five minutes up to it.",
    columns={"user_id": "STRING", "event_id": "STRING", "stream": "STRING", "events": "BIGINT"},
    column_descriptions={
        "stream": "The stream of the event: page_views, searches or clicks.",
        "events": "The user's events in the five minutes up to this one, which is counted too.",
    },
    key=("stream", "event_id"),
    allowed_lateness=timedelta(seconds=10),
    inputs=tuple(Input(stream, "user_id", COLUMNS) for stream in ("page_views", "searches", "clicks")),
    process=process,
    timer=timer,
    on_timer=on_timer,
    lookback=WINDOW,
)
