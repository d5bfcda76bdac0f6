"""Readers see what a gate has passed: a commit is written first, then audited, and then published."""

from pathlib import Path
from typing import Any

import pytest
from tests.support.ops_records import OpsRecords
from tests.support.torn import tear
from tests.unit.quality.conftest import Commit, ranges

from lockstep.quality import outcomes
from lockstep.quality.audited import versions
from lockstep.settings import Settings

TABLE = "gold.page_views_per_minute"
PASSED = {"success": True, "checks": 1, "failed": 0, "rows": 1}


@pytest.fixture
def written(commit: Commit, settings: Settings) -> Commit:
    """The table's first commit has passed its gate: version 1."""
    commit(TABLE, 0, {})
    commit(TABLE, 1, ranges((0, 0, 10)), rows=10)
    return commit


def state(ops_records: OpsRecords, position: int | None, success: bool = True) -> None:
    positions = {} if position is None else {TABLE: position}
    ops_records.write("ops.quality", {"positions": positions, "verdicts": {TABLE: PASSED | {"success": success}}})


def shown(settings: Settings) -> int:
    return versions(settings, outcomes.latest(settings), [TABLE])[TABLE]


def test_before_the_first_gate_readers_see_the_empty_table(
    settings: Settings, written: Commit, ops_records: OpsRecords
) -> None:
    assert shown(settings) == 0


def test_what_has_passed_is_shown_with_the_compaction_after_it(
    settings: Settings, written: Commit, ops_records: OpsRecords
) -> None:
    state(ops_records, 1)
    assert shown(settings) == 1
    written(TABLE, 2, {})
    assert shown(settings) == 2


def test_a_commit_that_waits_for_its_gate_is_not_shown(
    settings: Settings, written: Commit, ops_records: OpsRecords
) -> None:
    state(ops_records, 1)
    written(TABLE, 2, {})
    written(TABLE, 3, ranges((0, 10, 20)), rows=5)
    assert shown(settings) == 2


def test_the_promotion_of_a_replay_was_checked_in_its_shadow_and_is_shown(
    settings: Settings, written: Commit, ops_records: OpsRecords
) -> None:
    state(ops_records, 1)
    replayed: dict[str, Any] = {**ranges((0, 10, 10)), "replay": "r1", "stage": "promote"}
    written(TABLE, 2, replayed, rows=5)
    assert shown(settings) == 2
    written(TABLE, 3, ranges((0, 10, 20)), rows=5)
    assert shown(settings) == 2
    state(ops_records, 1, success=False)
    assert shown(settings) == 1, "the gate of the replayed rows has failed"


def test_of_a_torn_table_readers_see_what_has_passed_and_the_others_are_looked_up(
    settings: Settings, written: Commit, ops_records: OpsRecords, caplog: pytest.LogCaptureFixture
) -> None:
    other = "gold.ad_ctr"
    written(other, 0, {})
    ops_records.write("ops.quality", {"positions": {TABLE: 1}})
    written(TABLE, 2, ranges((0, 10, 20)), rows=5)
    tear(settings, TABLE)
    assert versions(settings, outcomes.latest(settings), [TABLE, other]) == {TABLE: 1, other: 0}
    assert f"lockstep ledger repair {TABLE}" in caplog.text


def test_a_table_without_a_suite_or_without_rows_is_shown_as_it_is(
    settings: Settings, written: Commit, ops_records: OpsRecords, tmp_path: Path
) -> None:
    assert versions(settings, outcomes.latest(settings), ["gold.unknown", "gold.sensor_alerts"]) == {}
    state = outcomes.latest(settings)
    assert versions(settings.model_copy(update={"project": tmp_path}), state, [TABLE]) == {}
    assert versions(settings.model_copy(update={"env": "dev"}), state, [TABLE]) == {}
