"""Which views may be computed: those whose silver tables have all passed their gates."""

import logging

import pytest
from tests.support.ops_records import OpsRecords
from tests.support.torn import tear
from tests.unit.quality.conftest import Commit, ranges

from lockstep.definition.registry import VIEWS
from lockstep.quality.readiness import is_open, unchecked, waits_for
from lockstep.settings import Settings

PAGES = VIEWS["page_views_per_minute"]
SENSORS = VIEWS["sensor_alerts"]
ORDERS = VIEWS["orders_with_customer"]


def test_a_gate_is_open_only_when_every_row_has_passed(
    settings: Settings, commit: Commit, ops_records: OpsRecords
) -> None:
    commit("silver.page_views", 1, ranges((0, 0, 10)), rows=10)
    assert not is_open(settings, "silver.page_views")
    ops_records.write("ops.quality", {"positions": {"silver.page_views": 1}})
    assert is_open(settings, "silver.page_views")
    commit("silver.page_views", 2, ranges((0, 10, 12)), rows=2)
    assert not is_open(settings, "silver.page_views")


def test_the_tables_with_rows_that_no_gate_has_passed_are_named(
    settings: Settings, commit: Commit, ops_records: OpsRecords
) -> None:
    commit("silver.page_views", 1, ranges((0, 0, 10)), rows=10)
    commit("silver.sensors", 1, ranges((0, 0, 10)), rows=10)
    ops_records.write("ops.quality", {"positions": {"silver.page_views": 1}})
    tables = ["silver.page_views", "silver.sensors", "silver.no_rows"]
    assert unchecked(settings, tables) == ["silver.sensors"]


def test_a_view_waits_for_a_shut_gate_and_the_others_go_on(
    settings: Settings, commit: Commit, ops_records: OpsRecords, caplog: pytest.LogCaptureFixture
) -> None:
    commit("silver.page_views", 1, ranges((0, 0, 10)), rows=10)
    commit("silver.sensors", 1, ranges((0, 0, 10)), rows=10)
    ops_records.write("ops.quality", {"positions": {"silver.sensors": 1}})
    with caplog.at_level(logging.WARNING):
        assert waits_for(settings, [PAGES, SENSORS]) == {PAGES.name: ["silver.page_views"]}
    assert caplog.messages == ["page_views_per_minute waits: silver.page_views has not passed its gate"]


def test_a_view_over_a_change_stream_waits_for_the_gate_of_its_current_rows(
    settings: Settings, commit: Commit, ops_records: OpsRecords
) -> None:
    for stream in ORDERS.streams:
        commit(f"silver.{stream}_changes", 1, ranges((0, 0, 10)), rows=10)
    passed = {f"silver.{stream}": 1 for stream in ORDERS.streams}
    ops_records.write("ops.quality", {"positions": dict(list(passed.items())[:1])})
    missing = [f"silver.{stream}" for stream in ORDERS.streams[1:]]
    assert waits_for(settings, [ORDERS]) == {ORDERS.name: missing}
    ops_records.write("ops.quality", {"positions": passed})
    assert waits_for(settings, [ORDERS]) == {}


def test_a_torn_table_waits_for_its_gate_and_the_others_go_on(
    settings: Settings, commit: Commit, ops_records: OpsRecords
) -> None:
    for table in ("silver.page_views", "silver.sensors", "gold.ad_ctr"):
        commit(table, 1, ranges((0, 0, 10)), rows=10)
        tear(settings, table)
    ops_records.write("ops.quality", {"positions": {"silver.page_views": 1, "silver.sensors": 1, "gold.ad_ctr": 1}})
    commit("silver.sensors", 1, ranges((0, 0, 10)), rows=10)
    assert unchecked(settings, ["silver.page_views", "silver.sensors", "gold.ad_ctr"]) == [
        "silver.page_views",
        "gold.ad_ctr",
    ]
    assert waits_for(settings, [PAGES, SENSORS]) == {PAGES.name: ["silver.page_views"]}
