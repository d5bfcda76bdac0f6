"""What the stream of a view's results is told: no more than what differs, and no less."""

import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.definition.registry import VIEWS
from lockstep.definition.view import END, MICROSECOND
from lockstep.lake import Commit
from lockstep.ledger import Entry
from lockstep.serving.results_topic import (
    Published,
    Step,
    change,
    differences,
    next_number,
    next_until,
    step_of,
    touched,
    written_since,
)

KEY = ("minute", "page")
NOW = Published(7, 1_000, "2026-11-10T10:05:00+00:00", ("minute", "page", "views"))
keys = st.tuples(st.integers(0, 2), st.sampled_from(["/", "/cart", None]))
tables = st.dictionaries(keys, st.sampled_from([1, 2, None]), max_size=6)
Table = dict[tuple[int, str | None], int | None]


def as_rows(table: Table) -> list[dict[str, Any]]:
    return [{"minute": minute, "page": page, "views": views} for (minute, page), views in table.items()]


def applied(table: Table, records: Iterable[dict[str, Any]]) -> Table:
    """The oracle: a reader of the topic, who knows Debezium's envelope and nothing else."""
    after = dict(table)
    for record in records:
        row = record["after"] if record["op"] in ("c", "u") else record["before"]
        key = (row["minute"], row["page"])
        if record["op"] == "c":
            assert key not in after
            assert record["before"] is None
        else:
            assert record["before"] == {"minute": key[0], "page": key[1], "views": after.pop(key)}
        if record["op"] != "d":
            after[key] = row["views"]
    return after


@given(wanted=tables, there=tables)
def test_a_reader_of_the_changes_has_the_wanted_rows_and_nothing_is_told_for_nothing(
    wanted: Table, there: Table
) -> None:
    found = [*differences(as_rows(wanted), as_rows(there), KEY)]
    records = [json.loads(str(change(*one, 3, NOW).value)) for one in found]
    assert applied(there, records) == wanted
    absent = object()
    differing = [k for k in wanted.keys() | there.keys() if wanted.get(k, absent) != there.get(k, absent)]
    assert len(records) == len(differing)


def test_rows_that_only_equal_themselves_are_not_told_again() -> None:
    row = {"page": "/", "share": float("nan"), "price": Decimal("1.50"), "day": date(2026, 11, 10)}
    assert [*differences([row], [dict(row)], ("page",))] == []


def test_a_change_is_as_debezium_writes_it_with_the_number_of_its_transaction_as_its_place() -> None:
    before = {"at": datetime(2026, 11, 10, 10, microsecond=1, tzinfo=UTC), "price": Decimal("1.50")}
    sent = change('{"at":"x"}', before, before | {"price": None}, 42, NOW)
    assert (sent.key, sent.id) == ('{"at":"x"}', '42:{"at":"x"}')
    at = "2026-11-10T10:00:00.000001Z"
    assert json.loads(str(sent.value)) == {
        "before": {"at": at, "price": "1.50"},
        "after": {"at": at, "price": None},
        "op": "u",
        "source": {
            "connector": "lockstep-results",
            "snapshot": "false",
            "lsn": 42,
            "sequence": '["42", "42"]',
            "ts_ms": 1_000,
        },
        "ts_ms": 1_000,
    }
    assert json.loads(str(change("k", before, None, 42, NOW).value))["after"] is None


@pytest.mark.parametrize(
    ("batch", "commits", "number"),
    [
        (-1, {}, 1),
        (4, {}, 5),
        (4, {0: (1, 2), 1: (1, 4)}, 5),
        (-1, {0: (1, 9)}, 10),
    ],
    ids=["the first", "sent before", "sent and read", "read, and what was sent is forgotten"],
)
def test_a_transaction_has_a_number_above_all_before_it(
    batch: int, commits: dict[int, tuple[int, int]], number: int
) -> None:
    assert next_number(batch, commits) == number


def commit(version: int, operation: str = "WRITE", **record: Any) -> Commit:
    return Commit("gold.v", version, version * 100, operation, 1, record)


def span(first: int, last: int) -> list[str]:
    return [f"2026-11-10T10:0{minute}:00+00:00" for minute in (first, last)]


def minute(number: int) -> datetime:
    return datetime(2026, 11, 10, 10, number, tzinfo=UTC)


BEFORE = Published(2, 200, "2026-11-10T10:01:00+00:00", NOW.columns)
LOG = {
    "roll-ups": ([commit(3, span=span(1, 2)), commit(4, span=None), commit(5, span=span(2, 4))], [(2, 4), (1, 2)]),
    "housekeeping": ([commit(3, "OPTIMIZE"), commit(4, writer="widen")], []),
    "one that readers do not see yet": ([commit(3, span=span(1, 2)), commit(8, span=span(0, 9))], [(1, 2)]),
    "a writer that names no interval": ([commit(3, span=span(1, 2)), commit(4, "DELETE")], None),
}


@pytest.mark.parametrize(("commits", "expected"), LOG.values(), ids=list(LOG))
def test_what_was_written_since_is_read_from_the_log(
    commits: list[Commit], expected: list[tuple[int, int]] | None
) -> None:
    found = written_since(BEFORE, NOW, [*reversed(commits), commit(2, "DELETE"), commit(1)])
    assert found == (None if expected is None else [(minute(low), minute(high)) for low, high in expected])


def test_it_is_not_known_of_a_log_that_begins_later_of_another_table_and_of_other_columns() -> None:
    assert written_since(None, NOW, [commit(2)]) is None
    assert written_since(BEFORE, NOW, [commit(4, span=None), commit(3, span=None)]) is None
    made_again = Commit("gold.v", 2, 999, "WRITE", 1, {"span": None})
    assert written_since(BEFORE, NOW, [made_again]) is None
    assert written_since(BEFORE, Published(7, 1_000, NOW.until, (*NOW.columns, "new")), [commit(2)]) is None


VIEW = VIEWS["page_views_per_minute"]
FINAL = "(window_end <= TIMESTAMP '2026-11-10 10:05:00.000000+00:00')"
BECAME_FINAL = "(NOT (window_end <= TIMESTAMP '2026-11-10 10:01:00.000000+00:00'))"
WRITTEN = "(window_start >= '2026-11-10 10:00:00.000000' AND window_start < '2026-11-10 10:05:00.000000')"


def test_all_is_compared_where_it_is_not_known_and_else_what_became_final_or_was_written() -> None:
    assert touched(VIEW, None, NOW, None) == touched(VIEW, BEFORE, NOW, None) == "true"
    some = touched(VIEW, BEFORE, NOW, [(minute(0), END), (minute(6), minute(9))])
    assert some == f"{BECAME_FINAL} OR {WRITTEN}", "no final row is in the second interval"


def test_the_last_step_compares_all_final_rows_with_all_that_the_topic_has() -> None:
    assert step_of(VIEW, "true", minute(5), NOW) == Step(NOW, f"{FINAL} AND (true)", "true")


def test_a_step_before_it_compares_both_up_to_an_instant_from_which_the_next_goes_on() -> None:
    step = step_of(VIEW, "true", minute(3), NOW)
    assert step.wanted == step.there == f"{FINAL.replace('10:05', '10:03')} AND (true)"
    assert step.published == replace(NOW, until="2026-11-10T10:03:00+00:00")
    assert touched(VIEW, step.published, NOW, []) == BECAME_FINAL.replace("10:01", "10:03")


@pytest.mark.parametrize(
    ("minutes", "until"),
    [
        ([], minute(5)),
        ([3, 1], minute(5)),
        ([4, 2, 1], minute(2) + MICROSECOND),
        ([3, 3, 3, 4], minute(3) + MICROSECOND),
        ([6, 6, 6], minute(5)),
    ],
    ids=["nothing", "few", "many", "many of one time", "only what the topic has, and no final row is"],
)
def test_a_step_has_so_many_rows_and_those_of_the_same_time_as_the_last(minutes: list[int], until: datetime) -> None:
    assert next_until(map(minute, minutes), 2, NOW) == until


def entry(version: int, until: datetime) -> Entry:
    return Entry("gold.v", version, 1, "run", "1", (), 0, {}, {}, version * 100, until=until)


def test_an_entry_is_published_once_all_its_final_rows_were_compared() -> None:
    whole = Published(3, 300, minute(5).isoformat(), NOW.columns)
    assert whole.has(entry(3, minute(5)))
    assert whole.has(entry(2, minute(5)))
    assert not whole.has(entry(4, minute(5)))
    assert not replace(whole, until=minute(4).isoformat()).has(entry(3, minute(5))), "the rest comes with the next step"
    assert not replace(whole, at=299).has(entry(3, minute(5))), "the table was made again"


def test_what_is_recorded_is_read_back() -> None:
    assert Published.of(NOW.fields) == NOW
    assert Published.of(json.loads(json.dumps(NOW.fields))) == NOW
    assert Published.of({}) is None
    assert NOW.final_until - BEFORE.final_until == timedelta(minutes=4)
