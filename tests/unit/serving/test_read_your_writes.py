"""A reader is told which partitions of its write were not read yet."""

import pytest

from lockstep.serving.read_your_writes import behind


@pytest.mark.parametrize(
    ("read", "after", "missing"),
    [
        ({"orders": {0: 5}}, {"orders": {0: 5}}, []),
        ({"orders": {0: 4}}, {"orders": {0: 5}}, ["orders-0 is read up to 4 of 5"]),
        ({"orders": {}}, {"orders": {1: 1_200}}, ["orders-1 is read up to 0 of 1,200"]),
        ({"orders": {0: 9}, "users": {0: 1}}, {"users": {0: 2}}, ["users-0 is read up to 1 of 2"]),
        ({}, {}, []),
    ],
)
def test_what_is_missing_is_said_by_partition(read, after, missing):
    assert behind(read, after) == missing
