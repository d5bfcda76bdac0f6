"""Changes are matched with the subscriptions of their own time."""

from datetime import UTC, datetime, timedelta

from lockstep.definition import subscriptions

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(second):
    return START + timedelta(seconds=second)


def to_rows(who, change):
    return [{"who": name, "change": change} for name in who]


def test_a_change_waits_until_the_subscriptions_before_it_are_known():
    state = subscriptions.empty()
    subscriptions.switch(state, "ann", at(1), True)
    assert subscriptions.match(state, at(5), "new price", to_rows) == []
    subscriptions.switch(state, "bob", at(3), True)
    assert subscriptions.timer(state) == at(5)
    state, rows = subscriptions.on_timer(state, at(5), to_rows)
    assert [row["who"] for row in rows] == ["ann", "bob"]
    assert subscriptions.timer(state) is None


def test_a_change_that_comes_late_is_matched_at_once_as_of_its_time():
    state = subscriptions.empty()
    subscriptions.switch(state, "ann", at(1), True)
    subscriptions.switch(state, "ann", at(5), False)
    subscriptions.switch(state, "bob", at(9), True)
    assert subscriptions.match(state, at(4), "new price", to_rows) == [{"who": "ann", "change": "new price"}]
    assert subscriptions.match(state, at(8), "new price", to_rows) == []


def test_a_subscription_of_the_same_instant_does_not_count():
    state = subscriptions.empty()
    subscriptions.switch(state, "ann", at(4), True)
    assert subscriptions.match(state, at(4), "new price", to_rows) == []


def test_a_subscription_that_is_made_again_and_again_is_one():
    state = subscriptions.empty()
    for second in range(100):
        subscriptions.switch(state, "ann", at(second), True)
        subscriptions.switch(state, "bob", at(second), False)
    assert state["held"] == {"ann": [[at(0), True]]}
