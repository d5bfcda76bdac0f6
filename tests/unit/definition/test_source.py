"""The source of a module is read the same by many threads at once."""

import gc
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

from lockstep.definition import source
from lockstep.definition.source import without_arguments

MODULE = Path(source.__file__).read_bytes()


@contextmanager
def other_threads_run_in_every_collection() -> Iterator[None]:
    threshold = gc.get_threshold()

    def collected(*_: object) -> None:
        os.sched_yield()

    gc.callbacks.append(collected)
    gc.set_threshold(50)
    try:
        yield
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(collected)


def test_many_threads_read_a_source_at_once():
    # Of one that was read before, it is remembered.
    sources = [MODULE + f"# {number}\n".encode() for number in range(100)]
    with other_threads_run_in_every_collection(), ThreadPoolExecutor(4) as threads:
        read = [*threads.map(lambda one: without_arguments(one, "VIEW", ("description",), 1), sources)]
    assert read == [(one, 1) for one in sources]
