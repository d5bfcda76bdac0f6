"""The queries of the merged views have each row once, and mark what is final."""

from datetime import UTC, datetime

from lockstep.definition.registry import VIEWS
from lockstep.definition.view import literal
from lockstep.serving import sql

AT = datetime(2026, 1, 1, 12, tzinfo=UTC)
WINDOWED = VIEWS["page_views_per_minute"]
UPSERTED = VIEWS["orders_with_customer"]


def test_both_layers_are_cut_at_the_same_instant():
    final = WINDOWED.final_before(AT)
    batch, live = sql.closed_and_live(WINDOWED, "gold.v", "live.v", AT, AT).split(" UNION ALL ")
    assert batch.endswith(f"FROM gold.v WHERE {final}")
    assert live.endswith(f"FROM live.v WHERE NOT ({final})")


def test_only_batch_is_final():
    batch, live = sql.closed_and_live(WINDOWED, "gold.v", "live.v", AT, AT).split(" UNION ALL ")
    assert "'batch' AS _layer, true AS _final" in batch
    assert "'live' AS _layer, false AS _final" in live


def test_a_view_without_a_live_table_has_batch_alone():
    assert "UNION" not in sql.closed_and_live(WINDOWED, "gold.v", None, AT, AT)


def test_an_upserted_view_has_no_final_rows():
    assert "false AS _final" in sql.only_batch(UPSERTED, "gold.v", AT)
    assert "false AS _final" in sql.newest_of_each_key(UPSERTED, "gold.v", "live.v", AT, AT)


def test_the_layers_of_an_upserted_view_are_joined_on_its_whole_key():
    query = sql.newest_of_each_key(UPSERTED, "gold.v", "live.v", AT, AT)
    on = " AND ".join(f"g.{name} <=> l.{name}" for name in UPSERTED.key)
    assert query.endswith(f"FULL OUTER JOIN (SELECT * FROM live.v WHERE _updated_at > {literal(AT)}) l ON {on}")


def test_a_held_table_is_read_at_its_version():
    assert sql.at_version("gold.v", 0) == "gold.v VERSION AS OF 0"
    assert sql.at_version("gold.v", None) == "gold.v"


def test_a_layer_that_never_wrote_has_no_freshness():
    row = sql.freshness_row("v", None, None, None)
    assert row.count("CAST(NULL AS TIMESTAMP)") == 3
