"""Which requests are taken, and which are refused before anything is read."""

import pytest

from lockstep.checkpoints.errors import ActionRefused
from lockstep.checkpoints.fields import LONGEST_TEXT, Action
from lockstep.checkpoints.form import request

RESET = {"action": "reset", "query": "page_views_per_minute", "to": "earliest", "by": "ops", "reason": "a changed page"}
SAVE = {"action": "savepoint", "query": "page_views_per_minute", "name": "before-sale", "by": "ops"}
CODE = [
    "'; DROP TABLE live.x; --",
    "{{ conn.password }}",
    "$(rm -rf /)",
    "`id`",
    "../../etc/passwd",
]
EVIL = [*CODE, "a\nb", "x" * 3000]
HONEST = [
    "the customers' ids were swapped",
    "R&D asked for it",
    "refund of $5 missed; see ticket",
    "{{ x }}",
    'she said "again" \\ <b>now</b>',
    "größer als 日本, 100 %",
]


def test_a_plain_request_is_taken():
    reset = request(RESET)
    assert (reset.action, reset.query.name, reset.to) == (Action.RESET, "page_views_per_minute", "earliest")
    assert request({"action": "list"}).query is None
    assert request(RESET | {"to": "2026-11-20T10:00:00+01:00"}).to == "2026-11-20T10:00:00+01:00"
    assert request(RESET | {"to": "page_views:0=1,page_views:1=2"}).to.startswith("page_views")


def test_all_keyed_views_share_a_job_or_none():
    shared = {"action": "share", "by": "ops", "reason": "after an incident"}
    assert request(shared).query is None
    with pytest.raises(ActionRefused, match="name no query"):
        request(shared | {"query": "user_sessions"})
    with pytest.raises(ActionRefused, match="reason"):
        request(shared | {"reason": ""})


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("field", ["action", "query", "to"])
def test_an_action_a_query_and_a_place_to_start_are_never_sql_jinja_shell_or_paths(field, evil):
    with pytest.raises(ActionRefused):
        request(RESET | {field: evil})


@pytest.mark.parametrize("evil", EVIL)
def test_names_are_never_sql_jinja_shell_or_paths(evil):
    with pytest.raises(ActionRefused):
        request(SAVE | {"name": evil})
    with pytest.raises(ActionRefused):
        request(SAVE | {"action": "fork", "name": evil, "reason": "a change"})


@pytest.mark.parametrize("text", HONEST + CODE)
@pytest.mark.parametrize("field", ["by", "reason"])
def test_the_free_text_of_people_arrives_byte_for_byte(field, text):
    assert getattr(request(RESET | {field: text}), field).encode() == text.encode()


def test_free_text_is_one_line_that_postgresql_can_store():
    assert request(RESET | {"reason": " the first\r\nthe second\x00\udc80line "}).reason == "the first the second line"


@pytest.mark.parametrize("field", ["by", "reason"])
def test_free_text_has_a_limit(field):
    longest = "x" * LONGEST_TEXT
    assert getattr(request(RESET | {field: longest}), field) == longest
    with pytest.raises(ActionRefused, match=f"{field} has 301 characters: use at most 300"):
        request(RESET | {field: longest + "x"})


def test_a_savepoint_needs_no_reason_and_keeps_one():
    assert request(SAVE).reason == ""
    assert request(SAVE | {"reason": "before the sale"}).reason == "before the sale"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"action": "reset"}, "for one query"),
        ({"action": "delete"}, "not an action"),
        (RESET | {"query": "nothing"}, "no query 'nothing'"),
        (RESET | {"reason": ""}, "reason is ''"),
        (RESET | {"reason": " \n"}, "reason is ''"),
        (RESET | {"by": ""}, "by is ''"),
        (RESET | {"to": ""}, "not where a query can begin"),
        (SAVE | {"name": ""}, "no name for a savepoint"),
    ],
)
def test_a_missing_or_unknown_field_is_named(values, reason):
    with pytest.raises(ActionRefused, match=reason):
        request(values)
