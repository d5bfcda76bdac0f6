"""Quiet partitions get heartbeats while somebody produces, and for ten minutes after that."""

from lockstep.live.quiet_partitions import Newest, newest_of_others, quiet

NOW = 1_900_000_000_000
SECOND, MINUTE = 1_000, 60_000
BUSY, QUIET = ("views", 0), ("clicks", 1)


def places(newest, own=None, before=-1):
    return quiet(newest, newest_of_others(newest, own or {}, before), NOW, after=2 * SECOND)


def test_a_partition_that_is_quiet_beside_a_busy_one_gets_one():
    assert places({BUSY: Newest(NOW - SECOND, 7), QUIET: Newest(NOW - 3 * SECOND, 4)}) == [QUIET]


def test_a_partition_without_any_record_gets_one():
    assert places({BUSY: Newest(NOW, 7), QUIET: Newest(-1, -1)}) == [QUIET]


def test_where_nobody_produces_nobody_gets_one():
    newest = {BUSY: Newest(NOW - 11 * MINUTE, 7), QUIET: Newest(NOW - 12 * MINUTE, 4)}
    assert places(newest) == []
    assert places(newest | {BUSY: Newest(NOW - 9 * MINUTE, 7)}) == [QUIET, BUSY]


def test_the_platforms_own_heartbeats_do_not_keep_themselves_alive():
    newest = {BUSY: Newest(NOW - 3 * SECOND, 8), QUIET: Newest(NOW - 3 * SECOND, 5)}
    own = {BUSY: 8, QUIET: 5}
    assert places(newest, own, before=NOW - 10 * MINUTE) == []
    assert places(newest, {BUSY: 7, QUIET: 5}) == [QUIET, BUSY], "a record came after the heartbeat"


def test_after_the_last_record_heartbeats_go_on_more_and_more_seldom_until_its_rows_are_final():
    newest, sent = {BUSY: Newest(NOW, 7)}, []
    for now in range(NOW, NOW + 60 * MINUTE, SECOND):
        if quiet(newest, NOW, now, after=2 * SECOND):
            newest = {BUSY: Newest(now - SECOND, 8)}
            sent.append((now - NOW) // SECOND)
    assert [n for n in sent if n < 60] == [3, 5, 9, 17, 33]
    assert len(sent) < 10, "each partition gets them"
    assert 300 < sent[-1] < 600
