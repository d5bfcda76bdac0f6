"""Each delivery keeps its guarantee when the sender is killed: at each failpoint, and at random moments."""

import os
import random
import signal
from collections import Counter

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed
from tests.integration.sinks.deliverer import rows
from tests.support.slow import slow

from lockstep.definition.alerting import Delivery
from lockstep.sinks.errors import Fenced, InvalidRow
from lockstep.sinks.kafka_senders import forget
from lockstep.sinks.kafka_sink import KafkaSink, KafkaSinkConfig

EXACTLY, AT_LEAST, AT_MOST = "exactly_once", "at_least_once", "at_most_once"
KILLS = 3


def sent(batches):
    return Counter(str(row["alert_id"]) for batch in range(batches) for row in rows(batch))


def batch(number):
    return Counter(str(row["alert_id"]) for row in rows(number))


@pytest.mark.parametrize(
    ("delivery", "crash_at", "lost", "repeated"),
    [
        slow(AT_MOST, "deliver-before:3", batch(2), Counter()),
        (AT_MOST, "deliver-sent:3", Counter(), Counter()),
        slow(AT_LEAST, "deliver-before:3", Counter(), Counter()),
        (AT_LEAST, "deliver-sent:3", Counter(), batch(2)),
        slow(EXACTLY, "deliver-before:3", Counter(), Counter()),
        (EXACTLY, "deliver-open:3", Counter(), Counter()),
        (EXACTLY, "deliver-sent:3", Counter(), Counter()),
    ],
)
def test_a_killed_sender_loses_and_repeats_only_what_its_delivery_allows(
    delivery, crash_at, lost, repeated, query, arrived
):
    alerts = query(delivery)
    assert alerts.run(crash_at) == -signal.SIGKILL
    assert alerts.run() == 0
    delivered = arrived(alerts.topic)
    assert sent(alerts.batches) - delivered == lost
    assert delivered - sent(alerts.batches) == repeated


def test_exactly_once_sends_nothing_of_a_batch_with_an_invalid_row_and_goes_on(settings, query, arrived):
    topic = query(EXACTLY).topic
    sink = KafkaSink(KafkaSinkConfig(topic, topic))
    with pytest.raises(InvalidRow):
        sink([{"alert_id": "good"}, {"user_id": "nameless"}], 0)
    assert sink([{"alert_id": "mended"}], 0) == 1
    assert arrived(topic) == Counter({"mended": 1})


def test_a_sink_whose_batches_are_forgotten_begins_with_the_first_one_again_and_no_other_does(settings, query, arrived):
    topic = query(EXACTLY).topic
    mine, other = KafkaSinkConfig(topic, topic), KafkaSinkConfig(f"{topic}-other", topic)
    for sink in (mine, other):
        assert KafkaSink(sink)([{"alert_id": sink.name}], 7) == 1
    forget(settings, mine.name)
    forget(settings, mine.name)
    assert KafkaSink(mine)([{"alert_id": "of-a-new-view"}], 0) == 1
    assert KafkaSink(other)([{"alert_id": "again"}], 7) == 0
    assert arrived(topic) == Counter({mine.name: 1, other.name: 1, "of-a-new-view": 1})


@pytest.mark.parametrize("delivery", [*(slow(of) for of in (AT_MOST, AT_LEAST)), EXACTLY])
def test_a_sender_killed_at_random_moments_keeps_its_guarantee(delivery, query, arrived):
    alerts = query(delivery, batches=80)
    chance = random.Random(delivery)
    for _ in range(KILLS):
        kill_after(alerts, batches=chance.randrange(5, 25), pause=chance.random() / 20)
    assert alerts.run() == 0
    delivered, wanted = arrived(alerts.topic), sent(alerts.batches)
    lost, repeated = wanted - delivered, delivered - wanted
    if delivery != AT_LEAST:
        assert repeated == Counter()
    if delivery != AT_MOST:
        assert lost == Counter()
    of_the_batches_that_were_hit = KILLS * len(rows(0))
    assert lost.total() <= of_the_batches_that_were_hit, "a kill loses at most the batch that it hit"
    assert repeated.total() <= of_the_batches_that_were_hit, "a kill repeats at most the batch that it hit"


def test_without_reading_the_batch_back_the_kill_after_the_commit_repeats_it(query, arrived):
    alerts = query(EXACTLY)
    assert alerts.run("deliver-sent:3") == -signal.SIGKILL
    assert alerts.run("", "without-reading-back") == 0
    assert arrived(alerts.topic) - sent(alerts.batches) == batch(2)


def test_of_two_senders_for_one_sink_the_older_one_is_fenced(query, arrived):
    alerts = query(EXACTLY)
    first, second = (KafkaSink(KafkaSinkConfig(alerts.topic, alerts.topic)) for _ in range(2))
    assert first(rows(0), 0) == 5
    assert second(rows(0), 0) == 0, "the first has sent it"
    assert second(rows(1), 1) == 5
    with pytest.raises(Fenced, match="another process delivers for it"):
        first(rows(1), 1)
    assert arrived(alerts.topic) == sent(2)


def test_a_new_generation_of_the_query_sends_its_first_batch_again(query, arrived):
    topic = query(EXACTLY).topic
    for delivery in Delivery:
        sink = KafkaSinkConfig(f"{topic}-{delivery}", topic, delivery=delivery)
        assert [KafkaSink(sink, generation)(rows(0), 0) for generation in (1, 2)] == [5, 5]
    assert arrived(topic) == Counter(dict.fromkeys(batch(0), 6))


def test_an_empty_batch_sends_nothing(query):
    assert KafkaSink(KafkaSinkConfig(query(EXACTLY).topic))([], 7) == 0


def kill_after(alerts, batches, pause):
    """Start the query, and kill it some time after it has recorded this many more batches."""
    start = acknowledged(alerts)
    child = alerts.start()
    wait_until = Retrying(stop=stop_after_delay(60), wait=wait_fixed(pause), retry=retry_if_result(lambda yes: not yes))
    try:
        wait_until(lambda: acknowledged(alerts) >= min(start + batches, alerts.batches - 1))
    finally:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def acknowledged(alerts):
    return int(alerts.acknowledged.read_text()) if alerts.acknowledged.exists() else -1
