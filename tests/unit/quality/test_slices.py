"""A gate checks the rows that no gate has passed yet."""

from tests.unit.quality.conftest import Commit, ranges

from lockstep.ledger.ranges import Range
from lockstep.quality.slices import cover, ledger_of, pending
from lockstep.settings import Settings


def test_the_first_gate_checks_all_rows(settings: Settings, commit: Commit) -> None:
    commit("silver.page_views", 1, ranges((0, 0, 10), (1, 0, 5)), rows=15)
    commit("silver.page_views", 2, ranges((0, 10, 30), (1, 5, 5)), rows=19)
    new = pending(settings, "silver.page_views", -1)
    assert new is not None
    assert (new.version, new.rows) == (2, 34)
    assert new.where == (
        "((_partition = 0 AND _offset >= 0 AND _offset < 30) OR (_partition = 1 AND _offset >= 0 AND _offset < 5))"
    )


def test_the_next_gate_checks_only_newer_rows(settings: Settings, commit: Commit) -> None:
    commit("silver.page_views", 1, ranges((0, 0, 10)), rows=10)
    commit("silver.page_views", 2, ranges((0, 10, 30)), rows=20)
    new = pending(settings, "silver.page_views", 1)
    assert new is not None
    assert new.where == "((_partition = 0 AND _offset >= 10 AND _offset < 30))"


def test_without_new_rows_there_is_nothing_to_check(settings: Settings, commit: Commit) -> None:
    commit("silver.page_views", 1, ranges((0, 0, 10)), rows=10)
    assert pending(settings, "silver.page_views", 1) is None
    assert pending(settings, "silver.searches", -1) is None


def test_a_commit_without_rows_or_of_maintenance_has_nothing_to_check(settings: Settings, commit: Commit) -> None:
    commit("silver.page_views", 1, ranges((0, 0, 10)), rows=0)
    commit("silver.page_views", 2, {}, rows=500)
    assert pending(settings, "silver.page_views", -1) is None


def test_current_rows_are_new_when_the_table_of_changes_has_new_rows(settings: Settings, commit: Commit) -> None:
    assert ledger_of("silver.orders") == "silver.orders_changes"
    commit("silver.orders_changes", 3, ranges((0, 7, 9)), rows=2)
    new = pending(settings, "silver.orders", -1)
    assert new is not None
    assert (new.table, new.version) == ("silver.orders", 3)


def test_gold_is_new_in_the_windows_of_the_added_files(settings: Settings, commit: Commit) -> None:
    stats = [
        {
            "minValues": {"window_start": "2026-11-20T10:05:00.000Z"},
            "maxValues": {"window_start": "2026-11-20T10:09:00.000Z"},
        },
        {
            "minValues": {"window_start": "2026-11-20T10:01:00.000Z"},
            "maxValues": {"window_start": "2026-11-20T10:03:00.000Z"},
        },
    ]
    commit("gold.page_views_per_minute", 1, ranges((0, 0, 10)), rows=6, stats=stats)
    new = pending(settings, "gold.page_views_per_minute", -1)
    assert new is not None
    assert new.where == (
        "(window_start >= TIMESTAMP '2026-11-20 10:01:00.000000+00:00' "
        "AND window_start < TIMESTAMP '2026-11-20 10:09:01.000000+00:00')"
    )


def test_gold_of_a_keyed_view_is_new_at_the_instants_of_the_added_files(settings: Settings, commit: Commit) -> None:
    lowest = {"at": "2026-11-20T10:05:00.000Z", "window_start": "2026-11-20T09:00:00.000Z"}
    stats = [{"minValues": lowest, "maxValues": {"at": "2026-11-20T10:09:00.000Z"}}]
    commit("gold.ad_ctr", 1, ranges((0, 0, 10)), rows=6, stats=stats)
    new = pending(settings, "gold.ad_ctr", -1)
    assert new is not None
    assert new.where == (
        "(at >= TIMESTAMP '2026-11-20 10:05:00.000000+00:00' AND at < TIMESTAMP '2026-11-20 10:09:01.000000+00:00')"
    )


def test_gold_without_statistics_is_checked_as_a_whole(settings: Settings, commit: Commit) -> None:
    commit("gold.page_views_per_minute", 1, ranges((0, 0, 10)), rows=6, stats=[{"numRecords": 6}])
    new = pending(settings, "gold.page_views_per_minute", -1)
    assert new is not None
    assert new.where == "true"


def test_ranges_of_one_partition_are_covered_by_one() -> None:
    ranges = [
        Range("t", "id", 1, 5, 9),
        Range("t", "id", 0, 3, 4),
        Range("t", "id", 1, 2, 5),
        Range("t", "id", 2, 7, 7),
    ]
    assert [(r.partition, r.start, r.end) for r in cover(ranges)] == [(0, 3, 4), (1, 2, 9)]


def test_what_lies_between_new_rows_and_those_of_a_replay_of_long_ago_is_not_checked_again(
    settings: Settings, commit: Commit
) -> None:
    assert [(r.start, r.end) for r in cover([Range("t", "id", 0, 5, 9), Range("t", "id", 0, 900_000, 900_007)])] == [
        (5, 9),
        (900_000, 900_007),
    ]

    def at(day: str) -> dict[str, dict[str, str]]:
        return {name: {"window_start": f"{day}T10:05:00.000Z"} for name in ("minValues", "maxValues")}

    commit("gold.page_views_per_minute", 1, ranges((0, 0, 10)), rows=1, stats=[at("2026-11-20")])
    commit("gold.page_views_per_minute", 2, ranges((0, 10, 20)), rows=1, stats=[at("2025-11-20")])
    new = pending(settings, "gold.page_views_per_minute", -1)
    assert new is not None
    assert new.where == " OR ".join(
        f"(window_start >= TIMESTAMP '{day} 10:05:00.000000+00:00' AND window_start < TIMESTAMP '{day} 10:05:01.000000+00:00')"
        for day in ("2025-11-20", "2026-11-20")
    )
