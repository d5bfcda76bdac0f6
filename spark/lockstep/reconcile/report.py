"""What reconciliation found, for a person in a terminal and, as JUnit XML, for a machine. Pure."""

from collections.abc import Iterable, Sequence
from xml.etree.ElementTree import Element, ElementTree, SubElement

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from lockstep.reconcile.causes import Difference
from lockstep.reconcile.run import Report

_STYLES = {"equal": "green", "explained": "yellow", "unexplained": "red"}


def render(reports: Sequence[Report]) -> RenderableType:
    """One row a view, and below some of the keys that differ."""
    table = Table(
        "view", "windows", "unexplained", "causes", "corrected", "until (UTC)", "verdict", box=None, pad_edge=False
    )
    for r in reports:
        until = f"{r.until:%F %T}" if r.until else "nothing closed yet"
        causes = ", ".join(f"{cause}: {windows}" for cause, windows in r.causes.items()) or "-"
        verdict = Text(r.verdict, style=_STYLES[r.verdict])
        table.add_row(r.view, f"{r.windows:,}", f"{r.unexplained:,}", causes, f"{r.corrections:,}", until, verdict)
    return Group(table, *(Text(f"{r.view} {_line(d)}") for r in reports for d in r.differences))


def junit(reports: Iterable[Report]) -> ElementTree:
    """The same as JUnit XML: a test suite a view, a test case for all that agrees, and one for each key that is shown.

    A key without a cause is a failure; one with a cause has it as its output.
    """
    root = Element("testsuites", name="lockstep reconcile")
    for r in reports:
        failures = [d for d in r.differences if not d.explained]
        shape = {"tests": str(len(r.differences) + 1), "failures": str(len(failures) + (r.unexplained > 0))}
        suite = SubElement(root, "testsuite", {"name": r.view} | shape)
        whole = SubElement(suite, "testcase", classname=r.view, name=f"{r.windows} windows")
        if r.unexplained:
            SubElement(whole, "failure", message=f"{r.unexplained} of {r.windows} windows differ, and nobody knows why")
        for d in r.differences:
            case = SubElement(suite, "testcase", classname=r.view, name=f"{d.window_start:%F %T} {d.key}")
            if d.explained:
                SubElement(case, "system-out").text = _line(d)
            else:
                SubElement(case, "failure", message=f"{d.kind}: no known cause").text = _line(d)
    return ElementTree(root)


def _line(d: Difference) -> str:
    return f"{d.window_start:%F %T} {d.kind} {d}"
