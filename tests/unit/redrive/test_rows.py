"""Rows of quarantine as people see and correct them; and how a re-driven row is known again."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.formats import avro_schema

from lockstep.contracts import CONTRACTS
from lockstep.redrive.rows import RedriveRefused, Row, origin, parse_place, place_of, shown, with_fields

PAGE_VIEWS, USERS = CONTRACTS["page_views"], CONTRACTS["users"]
ROW = Row(1, 17, datetime(2026, 11, 20, tzinfo=UTC), "malformed", b"k", b'{"page": "bad", "user_id": "u1"}')


@given(st.integers(0, 99), st.integers(0, 2**62))
def test_the_header_of_a_redriven_record_names_its_row(partition: int, offset: int) -> None:
    assert place_of(PAGE_VIEWS, origin(PAGE_VIEWS, (partition, offset))) == (partition, offset)


@pytest.mark.parametrize(
    "value", [None, b"", b"\xff", b"other/0/1", b"page_views/0", b"page_views/x/1", b"page_views/0/-1"]
)
def test_a_header_of_somebody_else_names_no_row(value: bytes | None) -> None:
    assert place_of(PAGE_VIEWS, value) is None


def test_a_field_gets_another_value_and_the_others_stay() -> None:
    assert json.loads(with_fields(ROW, {"page": "/"}, PAGE_VIEWS)) == {"page": "/", "user_id": "u1"}


@pytest.mark.parametrize("value", [None, b"", b'{"page": ', b"[1]", b"\xff"])
def test_what_is_no_json_object_has_no_fields_to_set(value: bytes | None) -> None:
    with pytest.raises(RedriveRefused, match=r"1:17 is no JSON object.* --value"):
        with_fields(replace(ROW, value=value), {"page": "/"}, PAGE_VIEWS)


def test_a_place_is_written_as_it_is_shown() -> None:
    assert parse_place("0:17") == (0, 17)
    with pytest.raises(RedriveRefused, match=r"write PARTITION:OFFSET, such as 0:17"):
        parse_place("17")


def test_pii_is_never_shown_however_deep_it_is() -> None:
    change = {"after": {"name": "Ann", "email": "ann@example.org", "age": 7}, "before": {"name": None}}
    text = shown(json.dumps(change).encode(), USERS)
    assert "Ann" not in text
    assert "ann@" not in text
    assert '"age": 7' in text


def test_bytes_that_cannot_be_read_are_shown_only_where_there_is_no_pii() -> None:
    assert shown(b'{"name": "Ann', USERS) == "(13 bytes that are no JSON, and may have PII)"
    assert shown(b'{"page": "/', PAGE_VIEWS) == '{"page": "/'
    assert shown(None, PAGE_VIEWS) == "(no value)"


def test_a_record_of_megabytes_is_shown_in_part() -> None:
    text = shown(json.dumps({"page": "x" * 5_000_000}).encode(), PAGE_VIEWS)
    assert len(text) < 3_000
    assert text.endswith("… (5,000,012 bytes)")


def test_a_value_in_another_format_is_shown_and_corrected_as_json() -> None:
    columns = {name: "STRING" for name in PAGE_VIEWS.columns if name != "event_time"}
    contract = replace(
        PAGE_VIEWS, columns=columns, format="avro", schema=avro_schema(columns), pii=("user_id",), event_time=""
    )
    row = replace(ROW, value=contract.encoded({"page": "bad", "user_id": "u1"}))
    assert '"page": "bad"' in shown(row.value, contract)
    assert "u1" not in shown(row.value, contract)
    assert contract.codec.decode(with_fields(row, {"page": "/"}, contract))["page"] == "/"
    assert shown(b"\xff", contract) == "(1 bytes that are not readable as avro)"
    with pytest.raises(RedriveRefused, match=r"1:17 is not readable as avro.* --value"):
        with_fields(ROW, {"page": "/"}, contract)
    with pytest.raises(RedriveRefused, match="does not allow"):
        with_fields(row, {"page": {"a": 1}}, contract)
