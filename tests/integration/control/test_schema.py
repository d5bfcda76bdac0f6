"""The tables of the control database."""

import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lockstep.control import records, schema
from lockstep.control.database import ControlUnavailable, SchemaMissing, connect, control
from lockstep.control.leases import lease
from lockstep.control.schema import SchemaNewer
from lockstep.ledger.heads import advance, head
from lockstep.settings import Settings
from lockstep.stack.postgres import connected

FIRST = Path(schema.__file__).parent / "migrations" / "versions" / "0001_control_tables.sql"


@pytest.fixture
def empty(settings, monkeypatch):
    """Settings whose control database is another one, without tables."""
    name, dsn = f"control_{uuid.uuid4().hex[:8]}", Settings.dsn
    with connected(settings, "postgres") as database, database.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name}")
        monkeypatch.setattr(Settings, "dsn", lambda self, which: dsn(self, name if which == "lockstep" else which))
        yield settings
        cursor.execute(f"DROP DATABASE {name}")


def test_the_schema_may_be_applied_again_at_once_and_by_several(settings):
    table = f"bronze.{uuid.uuid4().hex}"
    with control(settings) as connection:
        advance(connection, table, 7, 3, [])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: schema.apply(settings), range(8)))
    with control(settings) as connection:
        assert head(connection, table).version == 7


def test_a_database_from_before_there_were_migrations_is_taken_over_with_what_it_holds(empty):
    with control(empty) as connection, connection.cursor() as cursor:
        cursor.execute(FIRST.read_text())
        advance(connection, "bronze.page_views", 7, 3, [])
    schema.apply(empty)
    with control(empty) as connection:
        assert head(connection, "bronze.page_views").version == 7
    assert records.newest(empty, "ops.quality") is None


def test_a_database_that_a_newer_release_has_changed_is_refused(empty):
    schema.apply(empty)
    with control(empty) as connection, connection.cursor() as cursor:
        cursor.execute("UPDATE alembic_version SET version_num = '9999'")
    with pytest.raises(SchemaNewer, match=r"was changed by a newer release .*'9999'.* Run that release"):
        schema.apply(empty)


def test_a_statement_that_does_not_end_is_ended_after_a_minute_but_the_wait_for_a_lease_is_not(settings):
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("1min",)
    with (
        lease(settings, f"gold.{uuid.uuid4().hex}", "run", wait_seconds=100) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("SHOW statement_timeout")
        assert cursor.fetchone() == ("1min",), "again, once it has the lease"


def test_a_database_without_the_tables_is_refused_with_the_command_that_creates_them(settings):
    refusal = pytest.raises(SchemaMissing, match=r'"ledger_heads" does not exist.*`lockstep up postgres`')
    with refusal, control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SET search_path TO pg_temp")
        head(connection, "bronze.page_views")


def test_a_server_that_does_not_answer_is_named_with_the_command_that_starts_it(settings):
    gone = settings.model_copy(update={"postgres_port": 1})
    with pytest.raises(ControlUnavailable, match=r"127\.0\.0\.1:1 does not answer(.|\n)*lockstep up postgres"):
        connect(gone)
