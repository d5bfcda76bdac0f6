"""A table that others have is waited for, and not for ever: then they are named, and what was begun is done the next time."""

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import psycopg2
import pytest

from lockstep.control import written_anew
from lockstep.control.written_anew import TableHeld, write_anew
from lockstep.erase import scrub
from lockstep.erase.database import connection_to
from lockstep.settings import Settings

NOTES = ("public", "notes_of_a_test")
BLANK = "[erased 4711]"


@pytest.fixture
def cursor(settings: Settings) -> Iterator[Any]:
    """A cursor in the control database, which has a table with a person for the test."""
    connection = connection_to(settings, settings.control_database)
    assert connection
    with closing(connection), connection.cursor() as cursor:
        connection.autocommit = True
        cursor.execute("CREATE TABLE notes_of_a_test AS SELECT 'ann4711user wrote'::text AS note")
        yield cursor
        cursor.execute("DROP TABLE notes_of_a_test")


@pytest.fixture
def reader(settings: Settings) -> Iterator[Any]:
    """Somebody who has read the table, and whose transaction is still open."""
    dsn = settings.dsn(settings.control_database)
    with closing(psycopg2.connect(dsn, application_name="slow report")) as connection:
        connection.cursor().execute("SELECT FROM notes_of_a_test")
        yield connection


def file_of(cursor: Any) -> int:
    """The number of the table's file: a table that is written anew has another one."""
    cursor.execute("SELECT pg_relation_filenode('notes_of_a_test')")
    return int(cursor.fetchone()[0])


def test_who_has_the_table_is_named(cursor: Any, reader: Any) -> None:
    with pytest.raises(
        TableHeld, match=rf"notes_of_a_test .* slow report \(backend {reader.info.backend_pid}, idle in tr"
    ):
        write_anew(cursor, [NOTES], wait_seconds=0)


def test_it_is_written_anew_once_they_let_go(cursor: Any, reader: Any) -> None:
    before = file_of(cursor)
    reader.rollback()
    write_anew(cursor, [NOTES], wait_seconds=0)
    assert file_of(cursor) != before


def test_an_erasure_that_was_stopped_by_them_writes_it_anew_when_it_is_tried_again(
    settings: Settings, cursor: Any, reader: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        scrub, "write_anew", lambda cursor, tables: written_anew.write_anew(cursor, tables, wait_seconds=0)
    )
    with pytest.raises(TableHeld):
        scrub._database(settings, settings.control_database, "ann4711user", BLANK)
    cursor.execute("SELECT note FROM notes_of_a_test")
    assert cursor.fetchall() == [(f"{BLANK} wrote",)]
    before = file_of(cursor)
    reader.rollback()
    scrub._database(settings, settings.control_database, "ann4711user", BLANK)
    assert file_of(cursor) != before
