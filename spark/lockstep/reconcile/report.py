"""The report of a reconciliation, for a person in a terminal and, as JUnit XML, for a machine. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self
from xml.etree.ElementTree import Element, ElementTree, SubElement

from rich.console import Group, RenderableType
from rich.text import Text

from lockstep.reconcile.difference import Cause, Difference
from lockstep.reconcile.verdict import Verdict, WindowVerdict, overall
from lockstep.terminal import Listing

_STYLES = {
    Verdict.EQUAL: "green",
    Verdict.WITHIN_ERROR: "green",
    Verdict.EXPLAINED: "yellow",
    Verdict.UNEXPLAINED: "red",
}
# As many as a person reads in a terminal. ops.reconciliation has a row for every window.
_MOST_SHOWN = 20


@dataclass(frozen=True)
class Report:
    """The result for one view.

    Args:
        until: all windows that ended by then (UTC) are compared; None: no window is closed in both layers yet.
        windows: how many windows this run compared.
        unexplained: how many of them differ for no known cause.
        sample: one of the unexplained differences.
        causes: by cause, in how many windows it was found.
        differences: some of the keys that differ, the unexplained ones first.
        corrections: how many live rows this run corrected.
    """

    view: str
    verdict: Verdict
    until: datetime | None
    windows: int
    unexplained: int
    sample: str | None = None
    causes: Mapping[Cause, int] = field(default_factory=dict)
    differences: tuple[Difference, ...] = ()
    corrections: int = 0

    @classmethod
    def of(
        cls,
        view: str,
        until: datetime,
        windows: int,
        differences: Iterable[Difference],
        verdicts: Mapping[datetime, WindowVerdict],
        corrections: int,
    ) -> Self:
        """Sum up a comparison.

        Args:
            verdicts: by start, the verdict on each window that differs.
        """
        shown = tuple(worst(differences))
        verdict = overall(verdicts)
        return cls(
            view=view,
            verdict=verdict,
            until=until,
            windows=windows,
            unexplained=sum(window.verdict is Verdict.UNEXPLAINED for window in verdicts.values()),
            sample=str(shown[0]) if verdict is Verdict.UNEXPLAINED else None,
            causes=dict(Counter(cause for window in verdicts.values() for cause in window.causes)),
            differences=shown,
            corrections=corrections,
        )


def worst(differences: Iterable[Difference]) -> list[Difference]:
    """The differences to show: the unexplained ones first, then by window and key."""
    return sorted(differences, key=lambda d: (d.explained, d.window_start, d.key))[:_MOST_SHOWN]


def render(reports: Sequence[Report]) -> RenderableType:
    """A table with a row for each view, and below it some of the keys that differ."""
    table = Listing("view", "windows", "unexplained", "causes", "corrected", "until (UTC)", "verdict")
    for r in reports:
        until = f"{r.until:%F %T}" if r.until else "nothing closed yet"
        causes = ", ".join(f"{cause}: {windows}" for cause, windows in r.causes.items()) or "-"
        verdict = Text(r.verdict, style=_STYLES[r.verdict])
        table.add_row(r.view, f"{r.windows:,}", f"{r.unexplained:,}", causes, f"{r.corrections:,}", until, verdict)
    return Group(table, *(Text(f"{r.view} {_line(d)}") for r in reports for d in r.differences))


def junit(reports: Iterable[Report]) -> ElementTree:
    """The reports as JUnit XML: a test suite for each view.

    A suite has one test case for the view as a whole, and one for each key that is shown. An unexplained key is a failure.
    An explained key passes, with its cause as the output.
    """
    root = Element("testsuites", name="lockstep reconcile")
    for r in reports:
        failures = [d for d in r.differences if not d.explained]
        totals = {"tests": str(len(r.differences) + 1), "failures": str(len(failures) + (r.unexplained > 0))}
        suite = SubElement(root, "testsuite", {"name": r.view} | totals)
        whole = SubElement(suite, "testcase", classname=r.view, name=f"{r.windows} windows")
        if r.unexplained:
            message = f"{r.unexplained} of {r.windows} windows differ for no known cause"
            SubElement(whole, "failure", message=message)
        for d in r.differences:
            case = SubElement(suite, "testcase", classname=r.view, name=f"{d.window_start:%F %T} {d.key}")
            if d.explained:
                SubElement(case, "system-out").text = _line(d)
            else:
                SubElement(case, "failure", message=f"{d.kind}: no known cause").text = _line(d)
    return ElementTree(root)


def _line(d: Difference) -> str:
    return f"{d.window_start:%F %T} {d.kind} {d}"
