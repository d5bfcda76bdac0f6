"""Quiet partitions get heartbeats while somebody produces, and only then."""

from lockstep.live.quiet_partitions import Newest, quiet

NOW = 1_900_000_000_000
SECOND, MINUTE = 1_000, 60_000
BUSY, QUIET = ("views", 0), ("clicks", 1)


def places(newest, own=None):
    return quiet(newest, own or {}, NOW, after=2 * SECOND)


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
    assert places(newest, {BUSY: 8, QUIET: 5}) == []
    assert places(newest, {BUSY: 7, QUIET: 5}) == [QUIET, BUSY], "a record came after the heartbeat"
