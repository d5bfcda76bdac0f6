"""A slice is refined with Spark or without it. What both do is compared for random rows in test_small_slices."""

import pytest
from tests.support.slow import slow

# For a fixture or a parameter whose values are the rows up to which a slice is small.
EITHER_WAY = {"without Spark": 20_000, "with Spark": 0}
# In the gate without Spark alone. Truncates, new snapshots and LSNs that go back are refined with Spark there too.
mostly_without_spark = pytest.mark.parametrize(
    "either_way",
    [EITHER_WAY["without Spark"], slow(EITHER_WAY["with Spark"])],
    ids=[*EITHER_WAY],
    indirect=True,
)
