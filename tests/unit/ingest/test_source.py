"""What is read from Kafka is exactly what was asked for."""

import pytest

from lockstep.ingest.source import read_range
from lockstep.ledger.ranges import Range
from lockstep.settings import Settings


def test_two_ranges_of_a_partition_are_refused_because_spark_would_read_one_of_them() -> None:
    ranges = [Range("t", "i", 0, 0, 5), Range("t", "i", 0, 5, 9), Range("t", "i", 1, 0, 5)]
    with pytest.raises(ValueError, match="t: a partition has two ranges"):
        read_range(None, Settings(), ranges)
