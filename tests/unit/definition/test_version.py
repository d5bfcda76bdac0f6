"""Whatever decides a view's rows decides its version."""

import json
import runpy
import subprocess
import sys
from dataclasses import replace
from datetime import timedelta

from lockstep.contracts import CONTRACTS
from lockstep.definition.registry import VIEWS
from lockstep.definition.version import definition_version

PAGE_VIEWS = CONTRACTS["page_views"]


def test_another_definition_has_another_version_and_another_name_has_not():
    view = VIEWS["page_views_per_minute"]
    assert definition_version(view) == definition_version(replace(view, name="other"))
    others = [
        replace(view, where="page IS NOT NULL"),
        replace(view, allowed_lateness=timedelta(seconds=6)),
        replace(view, policy="side_output"),
    ]
    assert len({definition_version(definition) for definition in [view, *others]}) == 4


def test_another_contract_makes_another_definition(monkeypatch):
    view = VIEWS["page_views_per_minute"]
    before = definition_version(view)
    monkeypatch.setitem(CONTRACTS, "page_views", replace(CONTRACTS["page_views"], required=()))
    assert definition_version(view) != before


def test_the_subject_counts_where_it_decides_the_key_of_tokens(monkeypatch):
    view = VIEWS["page_views_per_minute"]

    def version(**changed):
        monkeypatch.setitem(CONTRACTS, "page_views", replace(PAGE_VIEWS, **changed))
        return definition_version(view)

    assert version(subject="") == version(subject="user_id")
    assert version(pii=("page",), subject="") != version(pii=("page",), subject="user_id")


TEXTS = {"description": "What pages visitors looked at.", "column_descriptions": {"page": "The path, with its slash."}}


def test_what_a_contract_or_a_view_says_about_itself_changes_no_version(monkeypatch):
    view = VIEWS["page_views_per_minute"]
    before = definition_version(view)
    monkeypatch.setitem(CONTRACTS, "page_views", replace(CONTRACTS["page_views"], max_lag=timedelta(1), **TEXTS))
    assert definition_version(replace(view, max_lag=timedelta(1), **TEXTS)) == before


MODULE = """
def double(rows):
    return rows


VIEW = View(
    name="a",{texts}
    process=lambda row: {{"description": row}},
    columns={{"n": "INT"}},
)
"""
MORE_TEXTS = """
    description="One row for each n,"
    " in plain words: (see below)",
    max_lag=None,
    column_descriptions={
        "n": "Pieces.",  # at last
    },"""


def versions_of(file, source):
    """The versions of the functions of a module's view: one is a lambda below its texts, the other stands above them."""
    file.write_text(source)
    module = runpy.run_path(str(file), {"View": dict})
    view = VIEWS["activity_within_five_minutes"]
    return [definition_version(replace(view, process=f)) for f in (module["VIEW"]["process"], module["double"])]


def test_texts_that_are_written_into_the_module_of_a_view_change_no_version(tmp_path):
    file = tmp_path / "a.py"
    before = versions_of(file, MODULE.format(texts=""))
    assert versions_of(file, MODULE.format(texts=MORE_TEXTS)) == before
    assert versions_of(file, MODULE.format(texts=MORE_TEXTS.replace("Pieces", "Orders"))) == before


def test_all_else_in_the_module_of_a_view_changes_its_version(tmp_path):
    file, module = tmp_path / "a.py", MODULE.format(texts=MORE_TEXTS)
    found = [
        versions_of(file, module),
        versions_of(file, module.replace('"description": row', '"description": 2 * row')),
        versions_of(file, module.replace("INT", "BIGINT")),
        versions_of(file, module.replace("return rows", "return call(rows, description=rows)")),
        versions_of(file, module.replace("return rows", "return call(rows, description=2 * rows)")),
    ]
    assert len({version for of_functions in found for version in of_functions}) == 2 * len(found)


def test_another_process_finds_the_same_versions():
    found = "from lockstep.definition.registry import VIEWS; from lockstep.definition.version import definition_version as v"
    show = f"{found}; import json; print(json.dumps({{name: v(view) for name, view in VIEWS.items()}}))"
    printed = subprocess.run([sys.executable, "-c", show], check=True, capture_output=True, text=True).stdout
    assert json.loads(printed) == {name: definition_version(view) for name, view in VIEWS.items()}


def test_what_the_object_of_a_method_has_decides_the_version():
    view = VIEWS["ad_click_through"]
    longer = replace(view.process.__self__, within=timedelta(hours=9))
    assert definition_version(replace(view, process=longer.process)) != definition_version(view)
