"""The verdict on a window, from the keys in it that differ. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from lockstep.reconcile.difference import Cause, Difference


class Verdict(StrEnum):
    """Whether the layers agree, from best to worst; ``explained`` if the causes of all differences are known."""

    EQUAL = "equal"
    WITHIN_ERROR = "within its stated error"
    EXPLAINED = "explained"
    UNEXPLAINED = "unexplained"


@dataclass(frozen=True)
class WindowVerdict:
    """The verdict on a window that differs.

    Args:
        causes: every cause that was found in it, each once.
        passing: whether one of the causes goes away by itself.
    """

    verdict: Verdict
    causes: tuple[Cause, ...]
    passing: bool

    @property
    def open(self) -> bool:
        """Whether the next run compares the window again."""
        return self.passing or self.verdict is Verdict.UNEXPLAINED


def window_verdicts(differences: Iterable[Difference]) -> dict[datetime, WindowVerdict]:
    """The verdict on each window that differs, by its start."""
    windows: dict[datetime, list[Difference]] = {}
    for difference in differences:
        windows.setdefault(difference.window_start, []).append(difference)
    return {start: _verdict(inside) for start, inside in windows.items()}


def joined(
    one: Mapping[datetime, WindowVerdict], other: Mapping[datetime, WindowVerdict]
) -> dict[datetime, WindowVerdict]:
    """The verdicts on windows whose differences were judged in two parts."""
    return {**one, **other} | {start: _both(one[start], other[start]) for start in one.keys() & other.keys()}


def _both(one: WindowVerdict, other: WindowVerdict) -> WindowVerdict:
    worse = _worst([one.verdict, other.verdict])
    return WindowVerdict(worse, tuple(dict.fromkeys(one.causes + other.causes)), one.passing or other.passing)


def _verdict(differences: list[Difference]) -> WindowVerdict:
    causes = tuple(dict.fromkeys(cause for difference in differences for cause in difference.causes))
    if all(difference.within_error for difference in differences):
        verdict = Verdict.WITHIN_ERROR
    else:
        explained = all(difference.explained for difference in differences)
        verdict = Verdict.EXPLAINED if explained else Verdict.UNEXPLAINED
    return WindowVerdict(verdict, causes, any(cause.passing for cause in causes))


def overall(verdicts: Mapping[datetime, WindowVerdict]) -> Verdict:
    """The verdict on all windows, of which only those that differ are given."""
    return _worst([Verdict.EQUAL, *(window.verdict for window in verdicts.values())])


def _worst(verdicts: Iterable[Verdict]) -> Verdict:
    return max(verdicts, key=[*Verdict].index)
