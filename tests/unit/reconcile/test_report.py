"""The report says what differs, and JUnit's readers understand it."""

from datetime import UTC, datetime
from io import BytesIO, StringIO
from xml.etree.ElementTree import parse

from rich.console import Console

from lockstep.reconcile.causes import LATE, Difference
from lockstep.reconcile.report import junit, render
from lockstep.reconcile.run import Report

AT = datetime(2026, 1, 1, tzinfo=UTC)
KNOWN = Difference(AT, '{"page":"/"}', "changed", '{"views":3}', '{"views":2}', live_cause=LATE)
UNKNOWN = Difference(AT, '{"page":"/"}', "only_batch", None, '{"views":2}', live_cause="")
REPORTS = [
    Report("quiet", "equal", None, 0, 0),
    Report("late", "explained", AT, 5, 0, causes={LATE: 1}, differences=(KNOWN,), corrections=1),
    Report("wrong", "unexplained", AT, 5, 1, sample=str(UNKNOWN), differences=(UNKNOWN,)),
]


def test_a_person_sees_each_view_its_verdict_and_what_differs():
    console = Console(width=200, record=True, file=StringIO())
    console.print(render(REPORTS))
    text = console.export_text()
    assert "nothing closed yet" in text
    assert "late: 1" in text
    assert 'only_batch {"page":"/"}: live has none, batch {"views":2}: no known cause' in text


def test_junit_fails_only_what_is_unexplained():
    file = BytesIO()
    junit(REPORTS).write(file, encoding="utf-8", xml_declaration=True)
    root = parse(BytesIO(file.getvalue())).getroot()  # noqa: S314
    assert {s.get("name"): (s.get("tests"), s.get("failures")) for s in root} == {
        "quiet": ("1", "0"),
        "late": ("2", "0"),
        "wrong": ("2", "2"),
    }
    failed = [case.get("name") for case in root.iter("testcase") if case.find("failure") is not None]
    assert failed == ["5 windows", '2026-01-01 00:00:00 {"page":"/"}']
