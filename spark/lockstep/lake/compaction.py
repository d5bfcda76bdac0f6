"""Put the rows of small files into larger ones, and each row into few of them.

A new file is at least twice as large as any of those that it replaces. So a row is rewritten a dozen times at most until its
file is large enough, however often files are added.
"""

from collections.abc import Iterable

from lockstep.lake.small_commits import SMALL_FILE, SmallCommits

# Compaction rewrites data, so it waits for several files. A table that is written every minute has as many after 16 minutes.
SMALL_FILES = 16


def taken(sizes: Iterable[int]) -> list[int]:
    """The sizes (bytes) of the files that are compacted, the smallest first; none where it is not worth it. Pure."""
    # Two larger ones would not fit into one file.
    small = sorted(size for size in sizes if size <= SMALL_FILE // 2)
    count, total = 0, 0
    for number, size in enumerate(small, 1):
        if size > total and count:
            break
        if size <= total and number >= SMALL_FILES:
            count = number
        total += size
    return small[:count]


def compact(opened: SmallCommits) -> None:
    """Compact the partitions of a table that have enough small files, without Spark."""
    for partition, sizes in opened.file_sizes().items():
        if files := taken(sizes):
            # Those of the next size are not among them, unless they are as large.
            opened.compact(min((size for size in sizes if size > files[-1]), default=SMALL_FILE), partition)
