"""Whatever decides a view's rows decides its version."""

from dataclasses import replace
from datetime import timedelta

from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.version import definition_version


def test_another_definition_has_another_version_and_another_name_has_not():
    view = VIEWS["page_views_per_minute"]
    assert definition_version(view) == definition_version(replace(view, name="other"))
    others = [
        replace(view, transform=lambda rows: rows),
        replace(view, allowed_lateness=timedelta(seconds=6)),
        replace(view, policy="side_output"),
    ]
    assert len({definition_version(definition) for definition in [view, *others]}) == 4


def test_another_contract_makes_another_definition(monkeypatch):
    view = VIEWS["page_views_per_minute"]
    before = definition_version(view)
    monkeypatch.setitem(CONTRACTS, "page_views", replace(CONTRACTS["page_views"], required=()))
    assert definition_version(view) != before
