"""Failed logins: an alert when a user has failed to log in three times within five minutes.

Successes between the failures change nothing. As long as each further failure is at least the third within five minutes, it
belongs to the same alert, which is raised at the third failure.
"""

from datetime import datetime, timedelta

from lockstep.definition import Event, Input, Keyed
from lockstep.definition.alerting import Alerting
from lockstep.definition.keyed import Row, State

WINDOW = timedelta(minutes=5)
FAILURES = 3


def process(state: State, event: Event) -> tuple[State, list[Row]]:
    """The state is the times of the failures in the window that ends with the last one."""
    before = state or []
    times = [time for time in before if event.time - time < WINDOW] + [event.time]
    alert = len(times) >= FAILURES > len(before)
    row = {
        "user_id": event.data["user_id"],
        "event_id": event.data["event_id"],
        "first_failed_at": times[0],
        "country": event.data["country"],
    }
    return times, [row] if alert else []


def timer(state: State) -> datetime:
    """When the last failure leaves the window."""
    last: datetime = state[-1]
    return last + WINDOW


def on_timer(_: State, __: datetime) -> tuple[State, list[Row]]:
    """Forget the user: no failure is left in the window."""
    return None, []


VIEW = Keyed(
    name="failed_logins",
    description="An alert when a user has failed to log in three times within five minutes.",
    columns={
        "user_id": "STRING",
        "event_id": "STRING",
        "first_failed_at": "TIMESTAMP",
        "country": "STRING",
    },
    column_descriptions={
        "event_id": "The third failure, at which the alert was raised.",
        "first_failed_at": "When the first of the three failures happened (UTC).",
        "country": "The country that the third failure came from.",
    },
    key=("event_id",),
    allowed_lateness=timedelta(seconds=10),
    inputs=(Input("logins", "user_id", ("event_id", "user_id", "country"), where="NOT success"),),
    process=process,
    timer=timer,
    on_timer=on_timer,
    # The window of the third failure, and that of the failure before it, which shows whether the alert was raised already.
    lookback=2 * WINDOW,
    alerts=Alerting(id=("event_id",), key="user_id"),
)
