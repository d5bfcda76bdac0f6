"""The source of a module without what decides nothing. Pure."""

import ast
import re
import threading
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate

_BLANKS = b" \t\r\n"
# Python 3.11 counts the depth of the trees that it makes in one place for all threads: where a garbage collection lets another
# thread parse in between, it raises SystemError ("AST constructor recursion depth mismatch").
_PARSING = threading.Lock()


def without_arguments(source: bytes, constant: str, names: tuple[str, ...], line: int) -> tuple[bytes, int]:
    """The source without some keyword arguments of the calls that give a constant its value, and where one of its lines is then.

    An argument is taken out with its comma and the blanks before it: in a call of several lines, nothing shows that it was there.

    Args:
        constant: such as ``VIEW``, of ``VIEW = Keyed(…)``.
        names: of the arguments.
        line: of the source, from 1.
    """
    starts = _starts(source)
    rest, removed = [], 0
    end = 0
    for first, last in _cuts(source, constant, names):
        rest.append(source[end:first])
        end = last
        if first < starts[line - 1]:
            removed += source[first:last].count(b"\n")
    return b"".join([*rest, source[end:]]), line - removed


def _starts(source: bytes) -> list[int]:
    """Where each line begins."""
    return [0, *accumulate(len(text) for text in source.splitlines(keepends=True))]


# A module has several functions, and a view is asked for its version several times: all of it took a second of each roll-up.
@lru_cache(maxsize=256)
def _cuts(source: bytes, constant: str, names: tuple[str, ...]) -> tuple[tuple[int, int], ...]:
    """Where each of the arguments begins and ends, in their order."""
    return tuple(_found(source, constant, names))


def _found(source: bytes, constant: str, names: tuple[str, ...]) -> Iterator[tuple[int, int]]:
    starts = _starts(source)
    try:
        with _PARSING:
            module = ast.parse(source)
    except SyntaxError:
        # The file was changed after its import, and is not finished.
        return
    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(keywords=arguments)) if name == constant:
                pass
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(keywords=arguments)) if name == constant:
                pass
            case _:
                continue
        for argument in arguments:
            if argument.arg in names:
                first = starts[argument.lineno - 1] + argument.col_offset
                last = starts[(argument.end_lineno or 0) - 1] + (argument.end_col_offset or 0)
                comma = re.match(rb"\s*,", source[last:])
                yield len(source[:first].rstrip(_BLANKS)), last + (comma.end() if comma else 0)
