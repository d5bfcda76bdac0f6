"""Compaction takes many small files at once, and rewrites each row a few times until its file is large."""

from math import log2

from hypothesis import given
from hypothesis import strategies as st

from lockstep.lake.compaction import SMALL_FILES, taken
from lockstep.lake.small_commits import SMALL_FILE

KB, MB = 1 << 10, 1 << 20
sizes = st.lists(st.integers(1, 2 * SMALL_FILE), max_size=60)


@given(sizes)
def test_what_is_taken_is_worth_it(files):
    found = taken(files)
    assert found == sorted(files)[: len(found)], "the smallest files"
    assert not found or (len(found) >= SMALL_FILES and found[-1] <= sum(found[:-1]))


def test_a_large_file_is_not_rewritten_for_the_sake_of_a_few_small_ones():
    assert taken([10 * KB] * 15 + [60 * MB]) == []
    assert taken([10 * KB] * 15 + [30 * MB]) == []
    assert taken([10 * KB] * 60 + [20 * MB]) == [10 * KB] * 60


def test_some_tiny_files_are_taken_with_the_others():
    assert len(taken([1 * KB, 3 * KB, 8 * KB] + [60 * KB] * 40)) == 43


def test_in_a_year_of_hours_each_row_is_rewritten_a_few_times():
    files, written, rewritten = list[int](), 0, 0
    for _ in range(365 * 24):
        files += [20 * KB] * 60
        written += 60 * 20 * KB
        if found := taken(files):
            rewritten += sum(found)
            files = [*sorted(files)[len(found) :], sum(found)]
    assert rewritten / written <= log2(SMALL_FILE / (20 * KB))
    assert sum(size < SMALL_FILE / 2 for size in files) < 2 * SMALL_FILES
