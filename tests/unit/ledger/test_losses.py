"""What the log has lost that the ledger needs is named exactly, and only what can be accepted is."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.errors import DataLoss, TopicRecreated
from lockstep.ledger.losses import gaps, recreated, truncations
from lockstep.ledger.planning import plan
from lockstep.ledger.ranges import Range, TopicOffsets, ends, size

DONE = [Range("orders", "id-1", 0, 0, 10)]


def topic_offsets(
    spans: Mapping[int, tuple[int, int]], topic_id: str = "id-1", unchanged_to: Mapping[int, int] | None = None
) -> TopicOffsets:
    """A topic: by partition, its first offset and how many it has."""
    partitions = {p: (first, first + held) for p, (first, held) in spans.items()}
    return TopicOffsets("orders", topic_id, partitions, unchanged_to=unchanged_to or {})


def test_retention_that_overtook_the_ledger_stops_with_the_exact_gap():
    with pytest.raises(DataLoss, match=r"orders-0: offsets \[10, 25\) are gone"):
        plan([Range("orders", "id-1", 0, 0, 10)], topic_offsets({0: (25, 5)}), 1000)


def test_a_log_that_ends_before_the_ledger_stops():
    with pytest.raises(DataLoss, match=r"the broker lost offsets \[4, 10\)"):
        plan([Range("orders", "id-1", 0, 0, 10)], topic_offsets({0: (0, 4)}), 1000)


def test_a_partition_that_vanished_stops():
    with pytest.raises(DataLoss, match="no such partition"):
        plan([Range("orders", "id-1", 5, 0, 10)], topic_offsets({0: (0, 4)}), 1000)


def test_a_recreated_topic_stops_even_when_its_offsets_fit():
    with pytest.raises(TopicRecreated, match=r"id id-1.*id id-2"):
        plan([Range("orders", "id-1", 0, 0, 10)], topic_offsets({0: (0, 20)}, "id-2"), 1000)


def test_a_gap_is_exactly_what_retention_took_and_nothing_else_can_be_signed_for():
    done = [Range("orders", "id-1", 0, 0, 10), Range("orders", "id-1", 1, 0, 10)]
    lost = gaps(done, topic_offsets({0: (25, 5), 1: (3, 20)}))
    assert lost == [Range("orders", "id-1", 0, 10, 25), Range("orders", "id-1", 1, 10, 10)]
    assert size(plan(lost, topic_offsets({0: (25, 5), 1: (3, 20)}), 1000)) == 5 + 13
    with pytest.raises(TopicRecreated):
        gaps(done, topic_offsets({0: (25, 5), 1: (3, 20)}, "id-2"))
    with pytest.raises(DataLoss):
        gaps(done, topic_offsets({0: (0, 5), 1: (0, 20)}))


def test_a_log_that_was_truncated_and_has_grown_again_past_the_ledger_stops():
    grown = topic_offsets({0: (0, 25)}, unchanged_to={0: 6})
    with pytest.raises(DataLoss, match=r"orders-0: the broker lost offsets \[6, 10\).*other records at \[6, 25\)"):
        plan(DONE, grown, 1000)
    assert truncations(DONE, grown) == [Range("orders", "id-1", 0, 6, 10)]


def test_another_leader_that_has_all_that_was_read_is_no_loss():
    same = topic_offsets({0: (0, 25)}, unchanged_to={0: 10})
    assert truncations(DONE, same) == []
    assert size(plan(DONE, same, 1000)) == 15


def test_an_open_transaction_is_no_truncation():
    log = replace(topic_offsets({0: (0, 10)}), ends={0: 14})
    assert truncations(DONE, log) == []
    assert size(plan(DONE, log, 1000)) == 0


@given(st.integers(0, 50), st.integers(0, 50), st.integers(0, 50), st.integers(0, 50))
def test_what_was_read_is_either_still_there_or_named_as_lost(end, cut, grown, retained):
    """The log was cut at some offset, has grown again, and retention has taken its beginning."""
    done = [Range("orders", "id-1", 0, 0, end)]
    log = topic_offsets({0: (min(retained, cut + grown), max(cut + grown - retained, 0))}, unchanged_to={0: cut})
    lost = truncations(done, log)
    assert lost == ([Range("orders", "id-1", 0, cut, end)] if cut < end else [])
    if lost:
        with pytest.raises(DataLoss, match="the broker lost"):
            plan(done, log, 1000)
        with pytest.raises(DataLoss, match="the broker lost"):
            gaps(done, log)
    else:
        # The signed gap has the log's epochs of today.
        assert ends(plan(gaps(done, log), replace(log, unchanged_to={}), 1000)) == {0: cut + grown}


def test_a_leader_epoch_that_the_broker_does_not_know_cannot_be_signed_for():
    older = topic_offsets({0: (0, 25)}, unchanged_to={0: -1})
    for refuses in (lambda: plan(DONE, older, 10), lambda: truncations(DONE, older), lambda: gaps(DONE, older)):
        with pytest.raises(DataLoss, match="does not know the leader epoch"):
            refuses()


def test_of_a_topic_that_was_created_again_the_log_has_lost_everything():
    again = topic_offsets({0: (0, 4), 1: (0, 2)}, "id-2")
    assert recreated(DONE, again) == [Range("orders", "id-1", 0, 0, 10)]
    assert recreated(DONE, topic_offsets({0: (0, 4)})) == []
    with pytest.raises(DataLoss, match="lacks partition 0"):
        recreated(DONE, topic_offsets({1: (0, 2)}, "id-2"))


def test_what_retention_took_of_a_partition_before_it_was_first_seen_is_a_gap():
    log = topic_offsets({0: (0, 10), 1: (25, 5)})
    with pytest.raises(DataLoss, match=r"orders-1: offsets \[0, 25\) are gone"):
        plan(DONE, log, 1000)
    lost = gaps(DONE, log)
    assert lost == [Range("orders", "id-1", 0, 10, 10), Range("orders", "id-1", 1, 0, 25)]
    assert ends(plan(lost, log, 1000)) == {0: 10, 1: 30}


def test_a_stream_that_is_seen_for_the_first_time_takes_the_log_as_it_is():
    log = topic_offsets({0: (7, 3), 1: (25, 5)})
    assert gaps([], log) == []
    assert [(r.start, r.end) for r in plan([], log, 1000)] == [(7, 10), (25, 30)]
