"""A rule that cannot be applied is refused before anything of it starts, with its file, its expectation and the way out."""

import json
from dataclasses import replace

from typer.testing import CliRunner

from lockstep import settings as configuration
from lockstep.cli.main import app
from lockstep.contracts import CONTRACTS
from lockstep.contracts.rules import rule_of
from lockstep.definition.version import definition_version
from lockstep.deploy.observe import try_views
from lockstep.deploy.plan import Observed, ViewState, plan

OF_PYTHON = {"type": "expect_column_values_to_match_regex", "kwargs": {"column": "page", "regex": "(?P<root>^/)"}}
UNIQUE = {"type": "expect_column_values_to_be_unique", "kwargs": {"column": "page"}, "meta": {"quarantine": True}}


def test_the_plan_refuses_a_regular_expression_that_spark_does_not_know(settings, stream, view, monkeypatch):
    rule = rule_of(OF_PYTHON)
    monkeypatch.setitem(CONTRACTS, stream.name, replace(stream, rules=(rule,)))
    changed = Observed(views={view.name: ViewState("before", "now", None, definition_version(view))})
    tried = try_views(settings, changed)
    [refused, *_] = map(str, plan(tried))
    assert refused.startswith(f"! stream {stream.name}: refused: {rule}: Spark cannot apply it: ")
    assert refused.endswith(f"correct it in the suite of silver.{stream.name}")


def test_the_check_names_a_suite_of_gold_that_puts_rows_aside(settings, view, monkeypatch, tmp_path):
    file = tmp_path / "expectations" / "gold" / f"{view.name}.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"name": f"gold.{view.name}", "expectations": [UNIQUE]}))
    monkeypatch.setattr(configuration, "load", lambda: settings.model_copy(update={"project": tmp_path}))
    checked = CliRunner().invoke(app, ["check", view.name])
    assert checked.exit_code == 1, checked.output
    assert (
        f"{file}: expect_column_values_to_be_unique(column='page'): only rows of silver can be put aside"
        in checked.output
    )
    assert f"{view.name}: runs live and in batch" in checked.output
