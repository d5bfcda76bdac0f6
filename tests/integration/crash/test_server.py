"""The Spark server is killed at the points that lie inside it; its supervisor and the retries put everything right."""


def test_rows_were_staged_and_the_log_not_written(scene):
    """P2."""
    scene.server_dies_with_rows_staged(nth=1)


def test_a_checkpoint_of_the_delta_log_was_being_written(scene):
    """P8."""
    scene.server_dies_in_a_log_checkpoint(nth=1)


def test_small_files_were_being_compacted(scene):
    """P9, OPTIMIZE; VACUUM is killed in the long run."""
    scene.server_dies_while_compacting()


def test_a_live_batch_was_in_its_table_and_not_committed(scene):
    """P6."""
    scene.server_dies_under_a_live_query("P6", nth=2)


def test_the_state_of_a_live_query_was_being_committed(scene):
    """P7."""
    scene.server_dies_under_a_live_query("P7", nth=2)
