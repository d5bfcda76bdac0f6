"""Live queries leave the batch layer most of the cores, however many there are."""

from lockstep.service.jobs import seconds_between_batches


def test_a_few_queries_look_each_second_and_many_take_turns():
    assert seconds_between_batches(1, cores=2) == 1
    assert seconds_between_batches(4, cores=2) == 4
    assert seconds_between_batches(8, cores=16) == 1


def test_views_over_windows_leave_time_to_keyed_views_but_never_wait_where_there_are_none():
    assert seconds_between_batches(4, cores=2, beside_keyed=True) == 6
    assert seconds_between_batches(1, cores=2, beside_keyed=False) == 1
    assert seconds_between_batches(8, cores=32, beside_keyed=True) == 1
