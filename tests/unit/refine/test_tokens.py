"""Tokens by the keys of persons, and what is said where the keys cannot be read."""

import secrets

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr
from tests.support.ports import free_ports

from lockstep.refine import tokens as tokens_module
from lockstep.refine.tokens import NO_KEY, KeysUnavailable, keys_of, tokens
from lockstep.settings import Settings

NAMES = st.none() | st.sampled_from(["ann", "bob", ""])
VALUES = st.none() | st.text(max_size=3)


@pytest.fixture(autouse=True)
def platform(monkeypatch, tmp_path):
    """A platform with a key, whose PostgreSQL does not run."""
    (port,) = free_ports(1)
    settings = Settings(home=tmp_path, postgres_port=port, token_key=SecretStr("of the platform"))
    monkeypatch.setattr(tokens_module, "_settings", lambda: settings)
    return settings


@given(st.lists(st.tuples(NAMES, VALUES)))
def test_two_values_have_the_same_token_if_they_and_their_persons_are_the_same(rows):
    keys = keys_of({person for person, _ in rows}, lambda names: {name: secrets.token_bytes(32) for name in names})
    found = tokens(keys, *([row[part] for row in rows] for part in (0, 1)))
    assert [token is None for token in found] == [value is None for _, value in rows]
    by_row = {row: token for row, token in zip(rows, found, strict=True) if token}
    assert len({*by_row.values()}) == len(by_row)
    assert all(by_row[row] == token for row, token in zip(rows, found, strict=True) if token)


def test_who_has_no_key_has_no_token_and_keys_are_asked_for_by_tokens():
    asked = []
    keys = keys_of(["ann", None, "ann"], lambda names: asked.extend(names) or {})
    assert tokens(keys, ["ann", "ann", None], ["a", None, "a"]) == [NO_KEY, None, tokens_module.token("a")]
    assert asked == [tokens_module.token("ann")]


def test_a_worker_that_cannot_read_the_keys_says_where_they_are_and_what_to_do(platform):
    rows = pa.array(["ann"]), pa.array(["a"])
    with pytest.raises(KeysUnavailable) as said:
        next(tokens_module._of_subjects(iter([rows])))
    assert f"127.0.0.1:{platform.postgres_port}" in str(said.value)
    assert "lockstep up postgres" in str(said.value)
    assert "LOCKSTEP_POSTGRES_HOST" in str(said.value)
    assert "\n" not in str(said.value), "the log of a live query has the first line"


def test_a_task_without_rows_needs_no_database():
    assert [*tokens_module._of_subjects(iter([]))] == []
