"""The text of a query's failure, in one line that a person can use."""

import re

# An error in a sink's Python process: its own line stands after the traceback, and after it the server's one.
_TRACEBACK = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n|\n)*(?P<error>.+)")
_MODULES = re.compile(r"^(?:\w+\.)+(?=\w+: )")


def cause(report: str) -> str:
    """What went wrong, by Spark's report of a query that failed: its first line, or the error at the end of a Python traceback.

    Pure.
    """
    found = _TRACEBACK.search(report)
    return _MODULES.sub("", found["error"]) if found else report.partition("\n")[0]
