"""What the archive keeps of an entry is all that anybody asks a log for."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.support.commits import commit_text, ledger_record, ranges, statistics

from lockstep import ledger
from lockstep.lake import parse_commit
from lockstep.ledger import archive
from lockstep.replay.runs import arrivals

AT = "2026-11-24T18:58:06.123Z"


@pytest.mark.parametrize("column", ["timestamp", "_arrival", "at", "window_start"])
def test_an_entry_is_the_same_from_the_archive(column):
    signed = {"by": "somebody", "reason": "retention was a day"}
    record = ledger_record(ranges({0: (5, 9), 1: (3, 3)}), seq=7, newest={"0": 99}, signed=signed, counts={"silver": 4})
    files = [statistics(2, {column: AT}, {column: AT}), statistics(2, {column: "2026-11-24T18:58:05Z"}, {column: AT})]
    commit = parse_commit(
        "silver.page_views", 12, commit_text(record, rows=4, size=99, timestamp=1_795_000_000_123, files=files)
    )
    row = dict(zip(archive.COLUMNS, archive._row(commit), strict=True))
    read = archive._commit(row)
    assert ledger.entry(read) == ledger.entry(commit)
    assert arrivals(read, column) == arrivals(commit, column)
    assert arrivals(read, column)[0] == datetime(2026, 11, 24, 18, 58, 5, tzinfo=UTC)
    assert replace(read, files=commit.files, operation=commit.operation) == commit


def test_an_entry_without_rows_has_no_times():
    commit = parse_commit("bronze.orders", 3, commit_text(ledger_record(ranges({0: (5, 9)})), timestamp=1))
    read = archive._commit(dict(zip(archive.COLUMNS, archive._row(commit), strict=True)))
    assert read.files == ()
    assert arrivals(read, "timestamp") == (None, None)
