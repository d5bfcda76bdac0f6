"""What `lockstep dbt` tells dbt: where it writes, and what a developer's models read, unless the caller says it."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from lockstep import atomic_files
from lockstep.marts import artefacts, by_hand
from lockstep.settings import Settings


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.delenv("DBT_TARGET", raising=False)
    return Settings(project=tmp_path, home=tmp_path, dbt_schema="dbt_alice")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["build"], "dev"),
        (["build", "--target", "prod"], "prod"),
        (["--target=prod", "build"], "prod"),
        (["build", "-t", "ci"], "ci"),
        (["build", "--select", "target"], "dev"),
    ],
)
def test_the_target_is_dev_unless_another_is_named(own: Settings, arguments: Sequence[str], expected: str) -> None:
    assert by_hand.target(arguments) == expected


def test_a_shell_may_name_the_target(own: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DBT_TARGET", "ci")
    assert by_hand.target(["build"]) == "ci"
    assert by_hand.target(["build", "-t", "prod"]) == "prod"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["build", "-s", "daily_orders"], True),
        (["source", "freshness"], True),
        (["docs", "generate"], True),
        (["parse"], False),
        (["ls", "--resource-type", "source"], False),
        (["build", "--help"], False),
        (["--version"], False),
        ([], False),
    ],
)
def test_only_what_asks_the_server_something_opens_a_session(arguments: Sequence[str], expected: bool) -> None:
    assert by_hand.needs_server(arguments) is expected


def test_each_target_has_a_directory_and_a_developer_reads_a_few_days(own: Settings) -> None:
    dev, prod = by_hand.defaults(own, ["build"]), by_hand.defaults(own, ["build", "--target", "prod"])
    assert dev["DBT_TARGET_PATH"] == str(own.home / "dbt" / "dev")
    assert prod["DBT_TARGET_PATH"] == str(own.home / "dbt" / "prod")
    assert dev["DBT_SAMPLE"] == "3 days"
    assert "DBT_SAMPLE" not in prod
    assert "DBT_SAMPLE" not in by_hand.defaults(own, ["build", "--target", "ci"])


@pytest.mark.parametrize("arguments", [["build", "--sample", "1 day"], ["build", "--empty"], ["run", "--sample=1 day"]])
def test_a_caller_who_says_what_is_read_is_right(own: Settings, arguments: Sequence[str]) -> None:
    assert "DBT_SAMPLE" not in by_hand.defaults(own, arguments)


def test_production_is_read_once_it_has_a_manifest(own: Settings) -> None:
    assert "DBT_DEFER" not in by_hand.defaults(own, ["build"])
    atomic_files.replace(artefacts.directory(own) / artefacts.MANIFEST, b"{}")
    assert by_hand.defaults(own, ["build"])["DBT_STATE"] == str(own.home / "dbt" / "prod")
    assert by_hand.defaults(own, ["build"])["DBT_DEFER"] == "true"
    assert "DBT_DEFER" not in by_hand.defaults(own, ["build", "--target", "prod"])


def test_a_run_of_production_leaves_its_artefacts_and_nothing_else(own: Settings, tmp_path: Path) -> None:
    written = tmp_path / "target"
    written.mkdir()
    for name in ("manifest.json", "run_results.json", "graph.gpickle"):
        (written / name).write_text(name)
    artefacts.keep(own, written)
    assert sorted(file.name for file in artefacts.directory(own).iterdir()) == ["manifest.json", "run_results.json"]
