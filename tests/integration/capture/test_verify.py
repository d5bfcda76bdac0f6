"""What is compared with the source database, and what is said of a row that differs."""

import json
import uuid
from contextlib import closing
from dataclasses import replace

import pytest
from pyspark.sql.pandas.types import to_arrow_schema
from tests.support.captured import taken
from tests.support.keys import keys_of, platform_key, token

from lockstep.control import subject_keys
from lockstep.control.database import control
from lockstep.definition.columns import ddl
from lockstep.kafka_clients import producer
from lockstep.reconcile import source_rows
from lockstep.reconcile.source_query import BEYOND
from lockstep.reconcile.source_rows import SourceUnreadable, snapshot
from lockstep.reconcile.with_source import Difference, Kind, verify
from lockstep.refine.tokens import NO_KEY
from lockstep.stack import postgres

WORDS = ["", "B", "Z", "a", "a b", "ä", "日本"]
COLUMNS = {"word": "STRING", "n": "INT", "amount": "DECIMAL(5,2)"}


@pytest.fixture
def sql(settings):
    with postgres.connected(settings, settings.package) as database, database.cursor() as cursor:
        yield cursor


@pytest.fixture
def words(settings, sql, captured):
    """A contract of a table whose key is a word and a number; nothing captures it."""
    sql.execute("CREATE TABLE public.words (word TEXT, n INT, amount NUMERIC, PRIMARY KEY (word, n))")
    for word in WORDS:
        sql.execute("INSERT INTO public.words VALUES (%s, 2, 1), (%s, 10, 1)", (word, word))
    key = ("word", "n")
    yield replace(captured, topic=f"{settings.package}.public.words", columns=COLUMNS, key=key, unique_id=key)
    sql.execute("DROP TABLE public.words")


def chunks(spark, settings, contract):
    schema = to_arrow_schema(spark.createDataFrame([], ddl(contract.columns)).schema)
    with snapshot(settings, contract, schema) as source:
        return [*source.chunks()]


def insert_that_never_happened(settings, contract, sql, key):
    """A row of a snapshot, in the topic alone."""
    sql.execute("SELECT (pg_current_wal_insert_lsn() - '0/0')::bigint")
    ((lsn,),) = sql.fetchall()
    origin = {"connector": "postgresql", "lsn": lsn, "sequence": json.dumps([None, str(lsn)]), "ts_ms": 0}
    change = {"before": None, "after": {"id": key}, "op": "r", "source": origin | {"snapshot": "true"}}
    with closing(producer(settings)) as kafka:
        kafka.send(contract.topic, json.dumps(change).encode()).get(10)


def test_a_row_that_differs_is_named_in_whatever_chunk_of_the_table_it_is(spark, settings, captured, sql, monkeypatch):
    monkeypatch.setattr(source_rows, "CHUNK", 3)
    table = f"public.{captured.name}"
    sql.execute(f"INSERT INTO {table} (id) SELECT generate_series(500, 515)")
    with taken(settings, captured):
        equal = verify(spark, settings, captured, 120)
        assert (equal.counts, equal.rows > 16) == ({}, True)
        sql.execute(f"INSERT INTO {table} (id, day) VALUES (600, 'infinity')")
        sql.execute(f"UPDATE {table} SET at = 'infinity', flag = true WHERE id = 507")
        insert_that_never_happened(settings, captured, sql, 550)
        found = verify(spark, settings, captured, 120)
    assert found.counts == {Kind.CHANGED: 1, Kind.EXTRA: 1, Kind.MISSING: 1}
    assert found.examples == (
        Difference(("507",), Kind.CHANGED, ("at", "flag")),
        Difference(("550",), Kind.EXTRA),
        Difference(("600",), Kind.MISSING),
    )


@pytest.mark.parametrize("size", [1, 4, 7, 100])
def test_the_rows_come_in_the_order_of_their_key_as_spark_has_it(spark, settings, words, monkeypatch, size):
    monkeypatch.setattr(source_rows, "CHUNK", size)
    found = chunks(spark, settings, words)
    rows = [(row["word"], row["n"]) for chunk in found for row in chunk.rows.to_pylist()]
    assert rows == [(word, n) for word in WORDS for n in (2, 10)]
    assert rows == [tuple(row) for row in spark.createDataFrame(rows, "word STRING, n INT").sort("word", "n").collect()]
    assert all(chunk.rows.num_rows == size for chunk in found[:-1])
    assert [chunk.until for chunk in found] == [*rows[size - 1 :: size], None]


def test_rows_with_a_personal_key_come_in_one_chunk(spark, settings, words, monkeypatch):
    monkeypatch.setattr(source_rows, "CHUNK", 4)
    (chunk,) = chunks(spark, settings, replace(words, pii=("word",)))
    assert (chunk.rows.num_rows, chunk.until) == (2 * len(WORDS), None)


def test_who_has_no_key_has_no_token_and_gets_no_key_by_being_compared(spark, settings, words, sql):
    known, unknown = (f"{name}{uuid.uuid4().hex}" for name in ("ann", "bob"))
    sql.execute("ALTER TABLE public.words ADD COLUMN name TEXT")
    sql.execute("INSERT INTO public.words VALUES (%s, 1, 1, 'a'), (%s, 1, 1, 'a')", (known, unknown))
    platform = platform_key(settings)
    with control(settings) as connection:
        (key,) = subject_keys.ensure(connection, [token(platform, known)]).values()
    named = {"columns": {**COLUMNS, "name": "STRING"}, "pii": ("name", "word"), "subject": "word"}
    (chunk,) = chunks(spark, settings, replace(words, **named))
    names = {row["word"]: row["name"] for row in chunk.rows.to_pylist()}
    assert names[token(platform, known)] == token(key, "a")
    assert names[token(platform, unknown)] == NO_KEY
    assert names[token(platform, "B")] is None
    assert keys_of(settings, unknown) == []


@pytest.mark.parametrize(("value", "is_beyond"), [("999.99", False), ("1000", True), ("1.005", True), ("'NaN'", True)])
def test_a_value_that_the_type_of_the_contract_does_not_hold_is_no_null(spark, settings, words, sql, value, is_beyond):
    sql.execute(f"UPDATE public.words SET amount = {value} WHERE word = '' AND n = 2")
    (chunk,) = chunks(spark, settings, words)
    first = chunk.rows.to_pylist()[0]
    assert (first["amount"] is None, first[BEYOND]) == (is_beyond, ["amount"] if is_beyond else [])


def test_a_column_that_the_table_does_not_have_is_null_and_without_its_key_or_itself_nothing_is_compared(
    spark, settings, words, sql
):
    more = replace(words, columns={**COLUMNS, "note": "STRING"})
    (chunk,) = chunks(spark, settings, more)
    assert chunk.rows["note"].null_count == 2 * len(WORDS)
    sql.execute("ALTER TABLE public.words RENAME COLUMN word TO term")
    with pytest.raises(
        SourceUnreadable, match=r"the table public.words has no column word, which is of the contract's"
    ):
        chunks(spark, settings, words)
    with pytest.raises(SourceUnreadable, match=r"the table public.none does not exist"):
        chunks(spark, settings, replace(words, topic=f"{settings.package}.public.none"))
