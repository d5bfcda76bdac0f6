"""Run in a project outside of the checkout: ask a statement until its answer, as CSV, has a text.

A program of its own, because it imports the platform out of the wheel: ``python ask_project.py STATEMENT TEXT SECONDS``. One
process asks all the time: each start of ``lockstep sql`` takes seconds of CPU, which the stack needs.
"""

import sys

from pyspark.errors import PySparkException
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from lockstep.catalog import connect
from lockstep.session import collect
from lockstep.settings import load


def main(statement: str, text: str, seconds: float) -> None:
    """Ask each second. A table may not be there yet."""
    patiently = Retrying(
        stop=stop_after_delay(seconds),
        wait=wait_fixed(1),
        retry=retry_if_exception_type((AssertionError, PySparkException)),
        reraise=True,
    )
    with connect(load(), "test") as spark:

        def ask() -> None:
            found = collect(spark.sql(statement))
            rows = [found.column_names, *(row.values() for row in found.to_pylist())]
            answer = "\n".join(",".join(map(str, row)) for row in rows)
            assert text in answer, f"{statement}\n{answer}"

        patiently(ask)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
