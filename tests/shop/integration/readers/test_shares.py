"""Share groups: each task goes to one worker, is acknowledged by itself, and is redelivered if the worker dies."""

from shop.readers import shares


def test_workers_share_one_partition_and_a_dead_ones_task_goes_to_another(settings):
    result = shares.demonstrate(settings, lambda _: None)
    poison = shares.TASKS.index("poison")
    assert result.done == {n: 1 for n in range(len(shares.TASKS)) if n != poison}
    assert set(result.shared) == {"wanda", "will"}, "both had work, though there is one partition"
    assert result.deliveries == {"plain": 1, "again": 2, "poison": 1, "hang": 2}
    assert result.taken_over != result.hung
    assert result.seconds < shares.LOCK_SECONDS + 5
