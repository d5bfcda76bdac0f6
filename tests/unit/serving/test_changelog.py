"""The pure parts of changelog topics."""

from collections.abc import Iterator

import pytest

from lockstep.serving import publish_changelog
from lockstep.serving.changelog import Change, Position, since
from lockstep.serving.publish_changelog import pieces


def test_the_rows_since_some_offsets_are_those_of_later_records_and_of_partitions_that_were_not_there() -> None:
    assert (
        since({0: 5, 2: 0})
        == "(_partition = 0 AND _offset >= 5) OR (_partition = 2 AND _offset >= 0) OR _partition NOT IN (0, 2)"
    )
    assert since({}) == "true"


@pytest.mark.parametrize(
    ("other", "follows"),
    [
        (Position(9, {0: 7, 1: 3}, ("id",)), True),
        (Position(9, {0: 5}, ("id",)), True),
        (Position(9, {0: 4}, ("id",)), False),
        (Position(9, {}, ("id",)), False),
        (Position(9, {0: 7}, ("id", "note")), False),
    ],
    ids=["more offsets", "the same", "a log that has begun again", "another log", "another column"],
)
def test_only_what_comes_from_the_same_log_with_the_same_columns_follows(other: Position, follows: bool) -> None:
    assert Position(3, {0: 5}, ("id",)).is_followed_by(other) is follows
    assert Position.of(other.fields) == other


@pytest.mark.parametrize(("rows", "expected"), [(0, [0]), (1, [1]), (2, [2]), (3, [2, 1]), (4, [2, 2])])
def test_only_the_last_piece_is_marked_and_there_is_always_one(
    monkeypatch: pytest.MonkeyPatch, rows: int, expected: list[int]
) -> None:
    monkeypatch.setattr(publish_changelog, "AT_ONCE", 2)

    def changes() -> Iterator[Change]:
        yield from (Change("t:0:1", str(n), None) for n in range(rows))

    found = [*pieces(changes())]
    assert [len(piece) for piece, _ in found] == expected
    assert [is_last for _, is_last in found] == [False] * (len(expected) - 1) + [True]
