"""Contracts and views get columns and wider types: the tables follow, old rows stay, and what does not fit is refused."""

import json
from dataclasses import replace
from decimal import Decimal
from importlib import import_module

import pytest
from tests.integration.refine.engines import mostly_without_spark
from tests.support.digest import digest
from tests.support.records import change_record
from tests.support.shop import START, Shop

from lockstep import lake, ledger
from lockstep.batch import late, rollup
from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.version import definition_version
from lockstep.deploy import columns
from lockstep.errors import ColumnsRefused
from lockstep.ingest import bronze
from lockstep.refine import silver
from lockstep.serving import merged


@pytest.fixture
def deploy(monkeypatch):
    """Run with another version of the code, in which contracts and views may be others."""

    def deployed(version, *changed):
        for module in (import_module("lockstep.ledger.entries"), silver, rollup):
            monkeypatch.setattr(module, "code_version", lambda: version)
        for part in changed:
            monkeypatch.setitem(CONTRACTS if hasattr(part, "topic") else VIEWS, part.name, part)

    return deployed


def with_column(contract, name, kind):
    """The contract with a new column before its last one."""
    columns = [*contract.columns.items()]
    return replace(contract, columns=dict([*columns[:-1], (name, kind), columns[-1]]))


def refine(spark, settings, stream):
    bronze.ingest(spark, settings, stream, "run")
    return silver.refine(spark, settings, stream, "run")


def test_a_column_of_an_event_is_added_and_old_rows_have_null(spark, settings, stream, shop, rows, deploy, either_way):
    shop.view("old", 0)
    shop.flush()
    refine(spark, settings, stream)
    newer = with_column(stream, "campaign", "STRING")
    deploy("2", newer)
    shop.view("new", 1, campaign="spring")
    shop.flush()
    refine(spark, settings, newer)
    found = {row["event_id"]: (row["page"], row["campaign"]) for row in rows(f"silver.{stream.name}")}
    assert found == {"old": ("/", None), "new": ("/", "spring")}


def test_a_wider_type_is_taken_and_old_rows_keep_their_values(spark, settings, stream, shop, rows, deploy, either_way):
    """The value that was too large is in quarantine until a replay."""
    kinds = {"position": "INT", "ratio": "FLOAT", "price": "DECIMAL(5,2)"}
    wider = {"position": "BIGINT", "ratio": "DOUBLE", "price": "DECIMAL(15,2)"}
    old = replace(stream, columns={**kinds, **stream.columns})
    deploy("1", old)
    shop.view("old", 0, position=1, ratio=0.1, price="1.25")
    shop.view("too large", 1, position=2**40)
    shop.flush()
    table = f"silver.{stream.name}"
    before = refine(spark, settings, old)
    content = digest(settings, table)
    newer = replace(stream, columns={**wider, **stream.columns})
    deploy("2", newer)
    assert silver.behind(settings, newer)
    assert refine(spark, settings, newer) is None
    assert not silver.behind(settings, newer)
    assert digest(settings, table) == content
    assert ledger.untouched(settings, before), "it is no writer's change of rows"
    shop.view("new", 2, position=2**40, ratio=0.1, price="1234567890123.25")
    shop.flush()
    entry = refine(spark, settings, newer)
    assert (entry.seq, entry.totals["silver"], entry.totals["quarantined"]) == (before.seq + 1, 2, 1)
    assert digest(settings, table, lambda row: row["event_id"] == "old") == content
    (new,) = (row for row in rows(table) if row["event_id"] == "new")
    assert (new["position"], new["ratio"], new["price"]) == (2**40, 0.1, Decimal("1234567890123.25"))
    assert [c.operation for c in lake.commits(settings, table) if c.record.get("writer") == lake.WIDEN] == ["WRITE"]


def test_a_quiet_stream_gets_its_columns_too(spark, settings, stream, shop, rows, deploy):
    shop.view("old", 0)
    shop.flush()
    refine(spark, settings, stream)
    newer = with_column(stream, "campaign", "STRING")
    deploy("2", newer)
    assert silver.behind(settings, newer)
    assert refine(spark, settings, newer) is None
    assert not silver.behind(settings, newer)
    assert [row["campaign"] for row in rows(f"silver.{stream.name}")] == [None]


def test_a_column_or_a_wider_type_of_a_source_table_is_in_its_current_rows_and_its_changes(
    spark, settings, stream, rows, deploy, either_way
):
    columns = {"order_id": "STRING", "lines": "INT", "kind": "STRING", "ordered_at": "TIMESTAMP"}
    old = replace(CONTRACTS["orders"], name=stream.name, topic=stream.topic, partitions=3, columns=columns)
    shop = Shop(settings, old)
    order = {"order_id": "1", "kind": "sale", "ordered_at": START.isoformat(), "lines": 1}

    def send(lsn, **row):
        value = change_record(old.name, lsn, lsn, None, {**order, **row}).value
        shop.raw(json.dumps(value).encode(), lsn, key="1")
        shop.flush()

    deploy("1", old)
    send(1)
    send(2, order_id="2")
    refine(spark, settings, old)
    newer = with_column(replace(old, columns={**columns, "lines": "BIGINT"}), "channel", "STRING")
    deploy("2", newer)
    send(3, channel="web", lines=2**40)
    refine(spark, settings, newer)
    assert {r["order_id"]: r["lines"] for r in rows(f"silver.{old.name}")} == {"1": 2**40, "2": 1}
    assert {r["_lsn"]: r["lines"] for r in rows(f"silver.{old.name}_changes")} == {1: 1, 2: 1, 3: 2**40}
    assert {r["order_id"]: r["channel"] for r in rows(f"silver.{old.name}")} == {"1": "web", "2": None}
    assert {r["_lsn"]: r["channel"] for r in rows(f"silver.{old.name}_changes")} == {1: None, 2: None, 3: "web"}


def test_another_type_is_refused_with_the_way_out_and_nothing_is_written(spark, settings, stream, shop, rows, deploy):
    shop.view("old", 0)
    shop.flush()
    refine(spark, settings, stream)
    other = replace(stream, columns={**stream.columns, "page": "BIGINT"})
    deploy("2", other)
    shop.view("new", 1)
    shop.flush()
    with pytest.raises(ColumnsRefused, match=r"the column page is of type string, and declared as bigint\nColumns can"):
        refine(spark, settings, other)
    assert [row["event_id"] for row in rows(f"silver.{stream.name}")] == ["old"]
    deploy("3", stream)
    assert refine(spark, settings, stream).counts["silver"] == 1


def test_a_column_that_is_declared_no_more_is_refused(spark, settings, stream, shop, deploy):
    shop.view("old", 0)
    shop.flush()
    refine(spark, settings, stream)
    less = replace(stream, columns={name: kind for name, kind in stream.columns.items() if name != "page"})
    deploy("2", less)
    shop.view("new", 1)
    shop.flush()
    with pytest.raises(ColumnsRefused, match="the column page is not declared any more"):
        refine(spark, settings, less)


@mostly_without_spark
def test_a_column_of_a_view_is_added_and_a_rebuild_fills_it_in_old_rows(
    spark, settings, stream, view, shop, rows, deploy, either_way
):
    shop.view("old", 0)
    shop.flush()
    refine(spark, settings, stream)
    rollup.roll_up(spark, settings, view, "run")

    newer = replace(
        view, columns={**view.columns, "twice": "BIGINT"}, measures={**view.measures, "twice": "count(*) * 2"}
    )
    deploy("2", newer)
    shop.view("new", 70)
    shop.flush()
    refine(spark, settings, stream)
    rollup.roll_up(spark, settings, newer, "run")
    assert twice(rows, view) == [(1, None), (1, 2)]
    rollup.rebuild(spark, settings, newer, START, START.replace(hour=11), "again")
    assert twice(rows, view) == [(1, 2), (1, 2)]


@mostly_without_spark
def test_a_view_with_a_wider_type_is_served_with_it(spark, settings, stream, view, shop, rows, deploy, either_way):
    shop.view("old", 0)
    shop.heartbeat(120)
    shop.flush()
    refine(spark, settings, stream)

    def with_size(kind, factor):
        measures = {**view.measures, "size": f"CAST(count(*) * {factor} AS {kind})"}
        return replace(view, columns={**view.columns, "size": kind}, measures=measures)

    narrow, wide = with_size("INT", 1), with_size("BIGINT", 2**40)
    deploy("1", narrow)
    rollup.roll_up(spark, settings, narrow, "run")
    merged.publish(spark, settings, [narrow])
    deploy("2", wide)
    shop.view("new", 190)
    shop.flush()
    refine(spark, settings, stream)
    rollup.roll_up(spark, settings, wide, "run")
    assert sizes(rows, "gold", view) == [1, 2**40]
    assert sizes(rows, "serving", view) == [1]
    rollup.rebuild(spark, settings, wide, START, START.replace(minute=1), "again")
    assert sizes(rows, "serving", view) == [2**40], "its view in SQL was created with the narrow type"


def test_the_plan_names_the_columns_that_tables_lack_and_apply_adds_them(spark, settings, stream, view, shop, deploy):
    shop.view("old", 0)
    shop.heartbeat(120)
    shop.flush()
    refine(spark, settings, stream)
    before = rollup.roll_up(spark, settings, view, "run")
    silver_table, gold_table = f"silver.{stream.name}", f"gold.{view.name}"
    assert not {silver_table, gold_table} & columns.look(settings).keys()

    deploy("2", with_column(stream, "campaign", "STRING"), replace(view, columns={**view.columns, "more": "INT"}))
    found = columns.look(settings)
    assert str(found[silver_table]) == "gets the column campaign STRING, null in the rows that are there"
    assert found[gold_table].columns.new == {"more": "INT"}
    columns.follow(settings, [silver_table, gold_table])
    assert not {silver_table, gold_table} & columns.look(settings).keys()
    assert ledger.untouched(settings, before), "no row is another"

    deploy("3", replace(stream, columns={**stream.columns, "campaign": "DATE"}))
    assert columns.look(settings)[silver_table].columns.refused == (
        "the column campaign is of type string, and declared as DATE",
    )
    with pytest.raises(ColumnsRefused, match="give what is new a name of its own"):
        columns.follow(settings, [silver_table])


def test_new_texts_reach_all_tables_and_write_no_row(spark, settings, stream, view, shop, deploy):
    shop.view("old", 0)
    shop.raw(b"{broken", 1)
    shop.heartbeat(120)
    shop.flush()
    deploy("1")
    in_silver = refine(spark, settings, stream)
    in_gold = rollup.roll_up(spark, settings, view, "run")
    merged.publish(spark, settings, [view])
    late.define(spark, settings, view)
    silver_table, gold_table = f"silver.{stream.name}", f"gold.{view.name}"
    assert comments(spark, gold_table)["views"] == view.column_descriptions["views"], "a new table has its texts"
    paths = {**stream.column_descriptions, "page": 'A path: it\'s \\ "/", and ünique;'}
    said = replace(stream, description="Pages, 'seen'.", column_descriptions=paths)
    counted = replace(view, description="Sums.", column_descriptions={})
    deploy("2", said, counted)
    assert silver.behind(settings, said)
    assert refine(spark, settings, said) is None
    assert not silver.behind(settings, said)
    assert rollup.roll_up(spark, settings, counted, "run") is None
    for table, before, text in (silver_table, in_silver, "Pages, 'seen'."), (gold_table, in_gold, "Sums."):
        assert spark.sql(f"DESCRIBE DETAIL {table}").first()["description"] == text
        assert comments(spark, table)["page"] == paths["page"]
        since = [c.operation for c in lake.commits(settings, table) if c.version > before.version]
        assert len(since) == 2 and {*since} <= ledger.HOUSEKEEPING
        assert ledger.untouched(settings, before), "no row is another"
    assert comments(spark, gold_table)["views"] is None, "what is said no more is taken away"
    assert in_gold.definition == definition_version(counted)
    merged.publish(spark, settings, [counted])
    late.define(spark, settings, counted)
    assert comments(spark, f"serving.{view.name}")["page"] == paths["page"]
    assert comments(spark, f"late.{view.name}")["_late_by"] == "How long after its event time the row arrived."
    shop.view("new", 190)
    shop.heartbeat(400)
    shop.flush()
    assert refine(spark, settings, said).counts["silver"] == 1
    assert rollup.roll_up(spark, settings, counted, "run").counts["counted"] == 1


def comments(spark, table):
    return {column.name: column.description or None for column in spark.catalog.listColumns(table)}


def sizes(rows, layer, view):
    return sorted(row["size"] for row in rows(f"{layer}.{view.name}"))


def twice(rows, view):
    return [(r["views"], r["twice"]) for r in sorted(rows(f"gold.{view.name}"), key=lambda r: r["window_start"])]
