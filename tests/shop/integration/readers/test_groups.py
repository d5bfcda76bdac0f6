"""Consumer groups: each group reads everything, its members share the partitions, and one takes over those of a dead member."""

from collections import Counter, defaultdict
from contextlib import closing

import pytest
from kafka import OffsetAndMetadata, TopicPartition

from lockstep import kafka_clients
from shop.readers import groups
from shop.readers.child_processes import ChildProcesses
from shop.readers.topics import own_topic, send


@pytest.fixture
def topic(settings):
    with own_topic(settings, 3) as name:
        yield name


@pytest.fixture
def members(settings):
    with ChildProcesses("shop.readers.group") as running:
        yield running


def test_fan_out_load_balancing_and_take_over_are_shown(settings):
    result = groups.demonstrate(settings, lambda _: None)
    assert result.fan_out == {"anna": result.sent, "dora": result.sent}
    assert sorted(p for partitions in result.balanced.values() for p in partitions) == [0, 1, 2]
    assert all(result.balanced.values())
    assert all(resumed == committed for resumed, committed in result.resumed.values())
    assert sorted(result.resumed) == result.balanced["anna"]
    assert 0 < result.repeated < groups.COMMIT_EVERY
    assert result.lost == 0


def test_takeover(settings, topic, members):
    """Two members, three partitions, 100, 80 and 90 committed; one dies: the other goes on with 101, 81 and 91."""
    last = {0: 100, 1: 80, 2: 90}
    send(settings, topic, 3, ({"user_id": p, "n": n} for p, at in last.items() for n in range(at + 1)))
    offsets = {TopicPartition(topic, p): OffsetAndMetadata(at + 1, "", -1) for p, at in last.items()}
    with closing(kafka_clients.consumer(settings, group_id=f"group-{topic}")) as client:
        client.assign([*offsets])
        client.commit(offsets)
    for name in ("first", "second"):
        # Neither of them handles enough records to commit.
        members.start(name, f"group-{topic}", topic, name, "1000")
    members.wait_until(lambda: shared(members) == [1, 2], "the members share the partitions")
    send(settings, topic, 3, ({"user_id": p, "n": n} for p in last for n in range(20)))
    wanted = {p: set(range(at + 1, at + 21)) for p, at in last.items()}
    members.wait_until(lambda: handled(members) == wanted, "what is new is read, and not committed")
    dead = {int(p) for p in members.reports_of("assigned", member="first")[-1]["offsets"]}
    before = len(members.reports)
    members.kill("first")
    members.wait_until(
        lambda: (
            {e["partition"] for e in members.reports[before:] if e["event"] == "handled" and e["member"] == "second"}
            >= dead
        ),
        "the second has taken over",
    )
    resumed = {}
    for line in members.reports[before:]:
        if line["event"] == "handled" and line["partition"] in dead:
            resumed.setdefault(line["partition"], line["offset"])
    assert resumed == {p: last[p] + 1 for p in dead}


def test_keyed_partitions(settings, topic, members):
    """user_id % 3 over three partitions: each user lies in one, and is handled in order."""
    events = [{"user_id": (n * 7) % 11, "n": n} for n in range(110)]
    assert send(settings, topic, 3, events) == len(events)
    members.start("reader", f"group-{topic}", topic, "reader", "10")
    members.wait_until(lambda: len(members.reports_of("handled")) == len(events), "all events are handled")
    partitions, order = defaultdict(set), defaultdict(list)
    for line in members.reports_of("handled"):
        user = line["value"]["user_id"]
        partitions[user].add(line["partition"])
        order[user].append(line["value"]["n"])
    assert partitions == {user: {user % 3} for user in range(11)}
    assert all(numbers == sorted(numbers) and len(numbers) == 10 for numbers in order.values())
    assert Counter(n for numbers in order.values() for n in numbers) == Counter(range(110))


def shared(members):
    """How many partitions each member was assigned last."""
    assigned = (members.reports_of("assigned", member=name)[-1:] for name in ("first", "second"))
    return sorted(len(line["offsets"]) for lines in assigned for line in lines)


def handled(members):
    """The offsets that were handled, by partition."""
    offsets = defaultdict(set)
    for line in members.reports_of("handled"):
        offsets[line["partition"]].add(line["offset"])
    return offsets
