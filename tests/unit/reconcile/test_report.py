"""The report shows what differs, for a person and as JUnit XML."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO
from xml.etree.ElementTree import parse

from rich.console import Console

from lockstep.reconcile.difference import Cause, Difference, Kind, Side
from lockstep.reconcile.report import Report, junit, render, worst
from lockstep.reconcile.verdict import Verdict, window_verdicts

AT = datetime(2026, 1, 1, tzinfo=UTC)
KNOWN = Difference(AT, '{"page":"/"}', Kind.CHANGED, Side('{"views":3}').wrong(Cause.LATE), Side('{"views":2}'))
UNKNOWN = Difference(AT, '{"page":"/"}', Kind.ONLY_BATCH, Side(None).wrong(), Side('{"views":2}'))
REPORTS = [
    Report("quiet", Verdict.EQUAL, None, 0, 0),
    Report("late", Verdict.EXPLAINED, AT, 5, 0, causes={Cause.LATE: 1}, differences=(KNOWN,), corrections=1),
    Report("wrong", Verdict.UNEXPLAINED, AT, 5, 1, sample=str(UNKNOWN), differences=(UNKNOWN,)),
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


def test_a_report_counts_windows_by_cause_and_quotes_an_unexplained_key():
    later = replace(KNOWN, window_start=AT + timedelta(minutes=1))
    differences = [KNOWN, later, UNKNOWN]
    report = Report.of("wrong", AT, 5, differences, window_verdicts(differences), corrections=3)
    assert (report.verdict, report.unexplained, report.causes) == ("unexplained", 1, {Cause.LATE: 2})
    assert report.sample == str(UNKNOWN)
    assert report.differences == (UNKNOWN, KNOWN, later)


def test_a_report_of_explained_differences_quotes_none():
    report = Report.of("late", AT, 5, [KNOWN], window_verdicts([KNOWN]), corrections=1)
    assert (report.verdict, report.sample, report.differences) == ("explained", None, (KNOWN,))


def test_a_person_sees_the_worst_twenty_keys():
    known = [replace(KNOWN, key=f"k{n:02}") for n in range(30)]
    assert worst([*known, UNKNOWN]) == [UNKNOWN, *known[:19]]
