"""Where a live job starts that has no checkpoint yet."""

from lockstep.definition.registry import VIEWS
from lockstep.live.generation import Generation
from lockstep.live.query import starts_of


def of(name, starts):
    return Generation(name, starts=starts), VIEWS[name]


def test_a_shared_job_starts_at_the_lowest_offset_of_its_views():
    sessions = of("user_sessions", {"page_views": {0: 70, 1: 12}})
    enriched = of("page_views_enriched", {"page_views": {0: 50, 1: 15}, "shop.public.users": {0: 3}})
    for members in ([sessions, enriched], [enriched, sessions]):
        assert starts_of(members) == {"page_views": {0: 50, 1: 12}, "shop.public.users": {0: 3}}


def test_views_that_have_never_run_start_at_the_first_offsets():
    assert starts_of([of("user_sessions", {}), of("page_views_enriched", {})]) == {}
