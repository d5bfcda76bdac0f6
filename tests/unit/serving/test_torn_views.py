"""Publication goes on past a view whose log is torn."""

from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from tests.support.commits import entry, ranges
from tests.support.results import PAGE_MINUTES

from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.errors import LedgerBroken, SomeFailed
from lockstep.ledger import Entry
from lockstep.serving import merged, publish_results
from lockstep.settings import Settings

ONE, ANOTHER = VIEWS["page_views_per_minute"], VIEWS["ad_ctr"]
STREAMS = [(replace(PAGE_MINUTES, name=f"results_of_{view.name}"), view) for view in (ONE, ANOTHER)]


@pytest.fixture
def one_is_torn(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(_: object, view: View, __: object) -> Entry:
        if view is ONE:
            raise LedgerBroken(f"gold.{view.name}: version 2 was cut short")
        return entry(ranges({0: (0, 10)}), until=datetime(2026, 1, 1, tzinfo=UTC))

    monkeypatch.setattr(publish_results, "with_results", lambda _: STREAMS)
    monkeypatch.setattr(publish_results, "visible", lambda _: {})
    monkeypatch.setattr(publish_results, "lease", lambda *_: nullcontext())
    monkeypatch.setattr(publish_results, "seen", seen)


def test_the_results_of_the_others_are_published_and_the_torn_one_is_named(
    settings: Settings, one_is_torn: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    published: list[str] = []
    monkeypatch.setattr(publish_results, "publish", lambda _, contract, *__: published.append(contract.name) or 1)
    with pytest.raises(SomeFailed, match=f"results_of_{ONE.name}: gold.{ONE.name}: version 2 was cut short"):
        publish_results.publish_all(settings, [])
    assert published == [f"results_of_{ANOTHER.name}"]


def test_what_a_torn_view_has_is_not_known_and_that_of_the_others_is(
    settings: Settings, one_is_torn: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publish_results, "_first_unpublished", lambda *_: 0)
    assert publish_results.unpublished_since(settings, []).keys() == {f"results_of_{ANOTHER.name}"}


@pytest.mark.parametrize(("changed", "fails"), [(ONE, True), (ANOTHER, False)])
def test_a_replay_fails_with_the_merged_view_of_its_own_tables_alone(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, changed: View, fails: bool
) -> None:
    def publish(*_: object) -> None:
        raise SomeFailed("Readers see some views as they were before", {f"serving.{ONE.name}": LedgerBroken("torn")})

    monkeypatch.setattr(merged, "publish", publish)
    with pytest.raises(SomeFailed) if fails else nullcontext():
        merged.follow(None, settings, [f"gold.{changed.name}"])  # type: ignore[arg-type]
