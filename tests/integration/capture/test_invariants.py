"""What is held of each captured table can be broken: a planted overlap, a gap, and a commit that falls are found."""

import pytest
from tests.support.invariants import falls, tiles

# One row from minute 1 to 3, then another version of it, and its delete at minute 9; an hour later it is there again. That a
# version has ended is known when it ends.
FIRST = [(1, None, 1, 3), (1, 3, 3, None)]
SECOND = [(3, None, 3, 9), (3, 9, 9, None)]
AGAIN = [(60, None, 60, None)]
SOUND = [*FIRST, *SECOND, *AGAIN]
DELETES = [9]


def minute(number):
    return (
        "CAST(NULL AS TIMESTAMP)" if number is None else f"TIMESTAMP '2026-11-25 00:00:00' + INTERVAL {number} MINUTE"
    )


def broken(spark, versions, deletes=DELETES):
    names = ("valid_from", "valid_to", "known_from", "known_to")
    rows = [", ".join(f"{minute(n)} AS {name}" for n, name in zip(row, names, strict=True)) for row in versions]
    history = " UNION ALL ".join(f"SELECT 1 AS id, {row}" for row in rows)
    log = " UNION ALL ".join(f"SELECT 1 AS id, {minute(n)} AS _committed_at, true AS _deleted" for n in deletes)
    return {row.broken for row in tiles(spark, history, f"SELECT *, _committed_at AS _arrival FROM ({log})", "id")}


def fallen(spark, *commits):
    """Changes by their own LSN and that of their commit, in the order of their offsets."""
    rows = ", ".join(f"({n}, 0, 1, {n}, {lsn}, {commit})" for n, (lsn, commit) in enumerate(commits))
    names = "id, _partition, _generation, _offset, _lsn, _commit_lsn"
    changes = f"SELECT 1 AS key, * EXCEPT (id) FROM VALUES {rows} AS changes({names})"
    return [row._offset for row in falls(spark, changes, "key")]


def test_versions_that_follow_each_other_are_sound(spark):
    assert broken(spark, SOUND) == set()


@pytest.mark.parametrize(
    ("versions", "deletes", "found"),
    [
        ([FIRST[0], (1, 4, 3, None), *SECOND, *AGAIN], DELETES, {"overlap"}),
        ([FIRST[0], (1, None, 3, None), *SECOND, *AGAIN], DELETES, {"overlap"}),
        ([FIRST[0], (1, 2, 3, None), *SECOND, *AGAIN], DELETES, {"gap"}),
        (SOUND, [10], {"gap"}),
        ([*FIRST, *SECOND, (60, 60, 60, None)], DELETES, {"ends before it begins"}),
        ([FIRST[0], (1, 4, 3, 50), (1, 3, 50, None), *SECOND, *AGAIN], DELETES, {"overlap"}),
    ],
    ids=["ends late", "does not end", "ends early", "ends without a delete", "is empty", "was known to end late"],
)
def test_a_version_that_overlaps_the_next_one_or_leaves_a_gap_is_found(spark, versions, deletes, found):
    assert broken(spark, versions, deletes) == found


def test_a_commit_below_an_earlier_one_is_found_and_one_that_was_sent_again_is_none(spark):
    assert fallen(spark, (11, 10), (12, 10), (21, 20), (31, 30)) == []
    assert fallen(spark, (21, 20), (31, 30), (22, 20)) == [2]
    assert fallen(spark, (21, 20), (31, 30), (21, 19)) == [], "its own LSN is known"
