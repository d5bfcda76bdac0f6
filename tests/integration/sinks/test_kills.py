"""Each delivery is what it says when the sender is killed: at named places, and at moments that nobody chose."""

import os
import random
import signal
from collections import Counter

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed
from tests.integration.sinks.deliverer import rows

from lockstep.definition.alerting import Delivery
from lockstep.sinks.errors import Fenced
from lockstep.sinks.sink import TopicSink
from lockstep.sinks.topic import ToTopic

ONCE, MORE, LESS = "exactly_once", "at_least_once", "at_most_once"


def sent(batches):
    return Counter(str(row["alert_id"]) for batch in range(batches) for row in rows(batch))


def batch(number):
    return Counter(str(row["alert_id"]) for row in rows(number))


@pytest.mark.parametrize(
    ("delivery", "crash_at", "lost", "repeated"),
    [
        (LESS, "deliver-before:3", batch(2), Counter()),
        (LESS, "deliver-sent:3", Counter(), Counter()),
        (MORE, "deliver-before:3", Counter(), Counter()),
        (MORE, "deliver-sent:3", Counter(), batch(2)),
        (ONCE, "deliver-before:3", Counter(), Counter()),
        (ONCE, "deliver-open:3", Counter(), Counter()),
        (ONCE, "deliver-sent:3", Counter(), Counter()),
    ],
)
def test_a_killed_sender_loses_and_repeats_what_its_delivery_allows_and_no_more(
    delivery, crash_at, lost, repeated, query, arrived
):
    alerts = query(delivery)
    assert alerts.run(crash_at) == -signal.SIGKILL
    assert alerts.run() == 0
    found = arrived(alerts.topic)
    assert sent(alerts.batches) - found == lost
    assert found - sent(alerts.batches) == repeated


@pytest.mark.parametrize("delivery", [LESS, MORE, ONCE])
def test_a_sender_killed_at_any_moment_keeps_its_word(delivery, query, arrived):
    alerts = query(delivery, batches=80)
    chance = random.Random(delivery)
    for _ in range(3):
        kill_after(alerts, batches=chance.randrange(5, 25), pause=chance.random() / 20)
    assert alerts.run() == 0
    found, wanted = arrived(alerts.topic), sent(alerts.batches)
    if delivery != MORE:
        assert found - wanted == Counter(), "repeated"
    if delivery != LESS:
        assert wanted - found == Counter(), "lost"
    assert len(wanted - found) <= 3 * len(rows(0)), "a kill may cost the batch that it hit, and no other"


def test_without_reading_the_batch_back_the_kill_after_the_commit_repeats_it(query, arrived):
    alerts = query(ONCE)
    assert alerts.run("deliver-sent:3") == -signal.SIGKILL
    assert alerts.run("", "without-reading-back") == 0
    assert arrived(alerts.topic) - sent(alerts.batches) == batch(2)


def test_of_two_senders_of_one_sink_the_older_one_is_shut_out(query, arrived):
    alerts = query(ONCE)
    first, second = (ToTopic(TopicSink(alerts.topic, alerts.topic)) for _ in range(2))
    assert first(rows(0), 0) == 5
    assert second(rows(0), 0) == 0, "the first had sent it"
    assert second(rows(1), 1) == 5
    with pytest.raises(Fenced, match="another process delivers for it"):
        first(rows(1), 1)
    assert arrived(alerts.topic) == sent(2)


def test_a_new_generation_of_the_query_starts_its_batches_anew(query, arrived):
    topic = query(ONCE).topic
    for delivery in Delivery:
        sink = TopicSink(f"{topic}-{delivery}", topic, delivery=delivery)
        assert [ToTopic(sink, generation)(rows(0), 0) for generation in (1, 2)] == [5, 5]
    assert arrived(topic) == Counter(dict.fromkeys(batch(0), 6))


def test_an_empty_batch_sends_nothing(query):
    assert ToTopic(TopicSink(query(ONCE).topic))([], 7) == 0


def kill_after(alerts, batches, pause):
    """Start the query, and kill it some time after it has acknowledged so many further batches."""
    start = acknowledged(alerts)
    child = alerts.start()
    patiently = Retrying(stop=stop_after_delay(60), wait=wait_fixed(pause), retry=retry_if_result(lambda far: not far))
    try:
        patiently(lambda: acknowledged(alerts) >= min(start + batches, alerts.batches - 1))
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def acknowledged(alerts):
    return int(alerts.acknowledged.read_text()) if alerts.acknowledged.exists() else -1
