"""Live queries leave the batch layer most of the cores, however many there are."""

from lockstep.service.jobs import seconds_between_batches


def test_a_few_queries_look_each_second_and_many_take_turns():
    assert seconds_between_batches(1, cores=2) == 1
    assert seconds_between_batches(4, cores=2) == 4
    assert seconds_between_batches(8, cores=16) == 1
