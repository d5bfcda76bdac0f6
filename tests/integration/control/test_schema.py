"""The tables of the control database."""

import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from lockstep.control import schema
from lockstep.control.database import SchemaMissing, control
from lockstep.ledger.heads import advance, head


def test_the_schema_may_be_applied_again_at_once_and_by_several(settings):
    table = f"bronze.{uuid.uuid4().hex}"
    with control(settings) as connection:
        advance(connection, table, 7, 3, [])
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: schema.apply(settings), range(8)))
    with control(settings) as connection:
        assert head(connection, table).version == 7


def test_a_database_without_the_tables_is_refused_with_the_command_that_creates_them(settings):
    refusal = pytest.raises(SchemaMissing, match=r'"ledger_heads" does not exist.*`lockstep up postgres`')
    with refusal, control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SET search_path TO pg_temp")
        head(connection, "bronze.page_views")
