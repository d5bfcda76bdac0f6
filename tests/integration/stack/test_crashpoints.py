"""The Spark server is killed at the points that lie inside it; its supervisor and the retries put everything right.

Together, because each start of a server takes its time; the long run takes each by itself.
"""

from tests.integration.crash.scenes import staged


def test_nothing_is_lost_or_doubled_by_a_server_killed_at_one_point_after_another(stack, tmp_path):
    with staged(stack, tmp_path / "scene") as scene:
        scene.prepared()
        scene.server_dies_with_rows_staged(nth=1)  # P2
        scene.server_dies_in_a_log_checkpoint(nth=1)  # P8
        scene.server_dies_while_compacting()  # P9
        scene.server_dies_while_vacuuming(nth=1)  # P9
        scene.server_dies_under_a_live_query("P6", nth=2)
        scene.server_dies_under_a_live_query("P7", nth=2)
        scene.recovers()
