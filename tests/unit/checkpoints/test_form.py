"""What may be asked for, and what is refused before anything is looked at."""

import pytest

from lockstep.checkpoints.errors import Refused
from lockstep.checkpoints.form import request

RESET = {"action": "reset", "query": "page_views_per_minute", "to": "earliest", "by": "ops", "why": "a changed page"}
SAVE = {"action": "savepoint", "query": "page_views_per_minute", "name": "before-sale", "by": "ops", "why": "sale"}
EVIL = [
    "'; DROP TABLE live.x; --",
    "{{ conn.password }}",
    "$(rm -rf /)",
    "`id`",
    "../../etc/passwd",
    "a\nb",
    "x" * 3000,
]


def test_a_plain_request_is_taken():
    asked = request(RESET)
    assert (asked.query.name, asked.to) == ("page_views_per_minute", "earliest")
    assert request({"action": "list"}).query is None
    assert request(RESET | {"to": "2026-11-20T10:00:00+01:00"}).to == "2026-11-20T10:00:00+01:00"
    assert request(RESET | {"to": "page_views:0=1,page_views:1=2"}).to.startswith("page_views")


@pytest.mark.parametrize("evil", EVIL)
@pytest.mark.parametrize("field", ["action", "query", "to", "by", "why"])
def test_sql_jinja_shell_and_paths_are_refused_in_every_field(field, evil):
    with pytest.raises(Refused):
        request(RESET | {field: evil})


@pytest.mark.parametrize("evil", EVIL)
def test_they_are_refused_as_names_too(evil):
    with pytest.raises(Refused):
        request(SAVE | {"name": evil})
    with pytest.raises(Refused):
        request(SAVE | {"action": "fork", "name": evil})


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"action": "reset"}, "for one query"),
        ({"action": "delete"}, "not an action"),
        (RESET | {"query": "nothing"}, "no query 'nothing'"),
        (RESET | {"why": ""}, "why is ''"),
        (RESET | {"by": ""}, "by is ''"),
        (RESET | {"to": ""}, "not where a query can begin"),
        (SAVE | {"name": ""}, "no name for a savepoint"),
    ],
)
def test_what_is_missing_or_unknown_is_named(said, reason):
    with pytest.raises(Refused, match=reason):
        request(said)
