"""Views whose new events can be found together."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from tests.unit.batch.test_summary import CHANGES, EVENTS, KEYED

from lockstep.batch.new_events import Wanted
from lockstep.ledger.ranges import Range

NOW = datetime(2026, 11, 20, 10, tzinfo=UTC)
RANGES = {EVENTS: [Range("e", "id", 0, 5, 9)], CHANGES: [Range("c", "id", 0, 0, 3)]}
VIEW = Wanted(KEYED, RANGES, NOW, NOW, {EVENTS: 4, CHANGES: 7})


def test_views_that_take_the_same_changes_fit_together_wherever_their_events_are():
    elsewhere = {**RANGES, EVENTS: [Range("e", "id", 0, 7, 9)]}
    assert VIEW.fits(replace(VIEW, ranges=elsewhere, low=NOW - timedelta(hours=1)))


def test_views_that_take_other_changes_of_a_table_do_not():
    assert not VIEW.fits(replace(VIEW, ranges={**RANGES, CHANGES: [Range("c", "id", 0, 1, 3)]}))


def test_views_that_read_other_versions_of_silver_do_not():
    assert not VIEW.fits(replace(VIEW, versions={**VIEW.versions, EVENTS: 5}))


def test_views_that_share_no_stream_fit_together():
    other = {"another": [Range("a", "id", 0, 1, 3)]}
    assert VIEW.fits(replace(VIEW, ranges=other))
