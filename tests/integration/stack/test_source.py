"""What the stack asks of the source database."""

import uuid

import pytest
from pydantic import SecretStr

from lockstep.stack import postgres
from lockstep.stack.errors import Unhealthy
from lockstep.stack.source import SourceServer, drop_slot, look_at, look_at_server, source_now, without_old_rows


@pytest.fixture
def sql(settings):
    with postgres.connected(settings, settings.package) as database, database.cursor() as cursor:
        yield cursor


def test_tables_that_do_not_tell_their_old_rows_are_found(settings, sql):
    suffix = uuid.uuid4().hex[:8]
    names = [f"public.{name}_{suffix}" for name in ("a_key_only", "b_whole", "c_nothing", "d_missing")]
    for name, identity in zip(names[:3], ("DEFAULT", "FULL", "NOTHING"), strict=True):
        sql.execute(f"CREATE TABLE {name} (id INT PRIMARY KEY); ALTER TABLE {name} REPLICA IDENTITY {identity}")
    assert without_old_rows(settings, settings.package, reversed(names)) == [names[0], names[2]]
    sql.execute(f'CREATE TABLE public."E_{suffix}" (id INT PRIMARY KEY)')
    assert without_old_rows(settings, settings.package, [f"public.E_{suffix}"]) == [f'public."E_{suffix}"']


def test_a_partitioned_table_tells_its_old_rows_where_its_partitions_do(settings, sql):
    table = f"public.parted_{uuid.uuid4().hex[:8]}"
    sql.execute(f"CREATE TABLE {table} (id INT PRIMARY KEY) PARTITION BY RANGE (id)")
    for number in range(2):
        sql.execute(f"CREATE TABLE {table}_{number} PARTITION OF {table} FOR VALUES FROM ({number}) TO ({number + 1})")
    sql.execute(f"ALTER TABLE {table}_0 REPLICA IDENTITY FULL")
    assert without_old_rows(settings, settings.package, [table]) == [f"{table}_1"]
    assert not look_at(settings, settings.package, [table])[table].has_old_rows
    sql.execute(f"ALTER TABLE {table}_1 REPLICA IDENTITY FULL")
    assert without_old_rows(settings, settings.package, [table]) == []
    found = look_at(settings, settings.package, [table])[table]
    assert (found.has_old_rows, found.is_partitioned, found.is_published) == (True, True, True)


def test_what_the_user_may_not_do_is_seen(settings, sql):
    assert look_at_server(settings, settings.package) == SourceServer(
        "logical", settings.postgres_user, may_replicate=True
    )
    role = f"reader_{uuid.uuid4().hex[:8]}"
    sql.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'secret'; CREATE TABLE public.{role} (id INT PRIMARY KEY)")
    reader = settings.model_copy(update={"postgres_user": role, "postgres_password": SecretStr("secret")})
    assert look_at_server(reader, settings.package) == SourceServer("logical", role, may_replicate=False)
    assert not look_at(reader, settings.package, [f"public.{role}"])[f"public.{role}"].is_readable


def test_the_source_keeps_its_name_while_its_log_grows(settings, sql):
    name, lsn = source_now(settings, settings.package)
    sql.execute("SELECT pg_logical_emit_message(false, 'test', 'grows')")
    assert source_now(settings, settings.package)[0] == name
    assert source_now(settings, settings.package)[1] > lsn


def test_a_slot_is_dropped_and_one_that_is_gone_is_no_error(settings, sql):
    slot = f"test_{uuid.uuid4().hex[:8]}"
    sql.execute("SELECT pg_create_logical_replication_slot(%s, 'pgoutput')", (slot,))
    assert drop_slot(settings, settings.package, slot)
    assert drop_slot(settings, settings.package, slot)


def test_a_source_that_does_not_answer_is_named(settings):
    elsewhere = settings.model_copy(update={"postgres_port": 1})
    with pytest.raises(Unhealthy, match="the source database shop does not answer"):
        source_now(elsewhere, elsewhere.package)
