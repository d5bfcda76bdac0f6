"""The Spark server is killed at the points that lie inside it; its supervisor and the retries put everything right."""

from collections.abc import Iterator

import pytest
from tests.ports import started

from lockstep.stack.stack import Stack


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """A stack of its own: after each start of a server its catalog is made from the lake, and that of all tests is large."""
    with started(tmp_path_factory.mktemp("killed")) as running:
        yield running


def test_nothing_is_lost_or_doubled_by_a_server_killed_at_one_point_after_another(scene):
    """Together, because each start of a server takes its time; the long run takes each by itself."""
    scene.prepared()
    scene.server_dies_with_rows_staged(nth=1)  # P2
    scene.server_dies_in_a_log_checkpoint(nth=1)  # P8
    scene.server_dies_while_compacting()  # P9
    scene.server_dies_under_a_live_query("P6", nth=2)
    scene.server_dies_under_a_live_query("P7", nth=2)
    scene.recovers()
