"""Readers outside, the queue way: each task to one worker, acknowledged one by one, and redelivered to another one."""

from shop.readers import shares


def test_workers_share_one_partition_and_a_dead_ones_task_goes_to_another(settings):
    shown = shares.demonstrate(settings, lambda _: None)
    poison = shares.TASKS.index("poison")
    assert shown.done == {n: 1 for n in range(len(shares.TASKS)) if n != poison}
    assert set(shown.shared) == {"wanda", "will"}, "both had work, though there is one partition"
    assert shown.deliveries == {"plain": 1, "again": 2, "poison": 1, "hang": 2}
    assert shown.taken_over != shown.hung
    assert shown.seconds < shares.LOCK_SECONDS + 5
