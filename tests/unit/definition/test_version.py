"""Whatever decides a view's rows decides its version."""

import json
import subprocess
import sys
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


def test_another_process_finds_the_same_versions():
    found = "from lockstep.definition.registry import VIEWS; from lockstep.definition.version import definition_version as v"
    show = f"{found}; import json; print(json.dumps({{name: v(view) for name, view in VIEWS.items()}}))"
    printed = subprocess.run([sys.executable, "-c", show], check=True, capture_output=True, text=True).stdout
    assert json.loads(printed) == {name: definition_version(view) for name, view in VIEWS.items()}


def test_what_the_object_of_a_method_has_decides_the_version():
    view = VIEWS["ad_click_through"]
    longer = replace(view.process.__self__, within=timedelta(hours=9))
    assert definition_version(replace(view, process=longer.process)) != definition_version(view)
