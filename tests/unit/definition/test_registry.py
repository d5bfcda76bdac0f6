"""A contract or a view with an error is named with its line, and stops no other."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from lockstep import project
from lockstep import settings as configuration
from lockstep.contracts import with_rules
from lockstep.contracts.contract import Contract
from lockstep.project import Registry

SOUND = """
from lockstep.contracts import Contract

CONTRACT = Contract("{name}", "{name}", "events", {{"id": "STRING"}}, ("id",), ("id",), "at")
"""
BROKEN = {
    "syntax": ("NAME = 'a'\nCONTRACT = Contract(\n", "line 2: SyntaxError: '(' was never closed"),
    "unknown": ("\n\nCONTRACT = Contrakt()\n", "line 3: NameError: name 'Contrakt' is not defined"),
    "incomplete": (
        "from lockstep.contracts import Contract\nCONTRACT = Contract('a')\n",
        "line 2: it does not define CONTRACT",
    ),
    "without": ("NAME = 'a'\n", "it does not define CONTRACT: module"),
    "imports": ("import no_such_module\n", "line 1: ModuleNotFoundError: No module named 'no_such_module'"),
}


@pytest.fixture
def contracts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the contracts of a project, with a sound one."""
    (tmp_path / "pyproject.toml").write_text('[tool.lockstep]\npackage = "someones"\n')
    folder = tmp_path / "spark" / "someones" / "contracts"
    folder.mkdir(parents=True)
    (folder / "sound.py").write_text(SOUND.format(name="sound"))
    monkeypatch.setenv("LOCKSTEP_PROJECT", str(tmp_path))
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield folder
    for name in [name for name in sys.modules if name.partition(".")[0] == "someones"]:
        del sys.modules[name]


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_module_is_left_out_and_named_with_its_line(contracts: Path, kind: str) -> None:
    source, reason = BROKEN[kind]
    (contracts / "another.py").write_text(source)
    registry: Registry[Contract] = Registry("contracts", "CONTRACT")
    assert [*registry] == ["sound"]
    ((file, said),) = registry.broken.items()
    assert file == str(contracts / "another.py")
    assert said.startswith(reason)


def test_a_contract_that_describes_a_column_that_it_does_not_have_is_left_out_and_named(contracts: Path) -> None:
    described = SOUND.format(name="another").replace('"at")', '"at", column_descriptions={"idd": "Who."})')
    (contracts / "another.py").write_text(described)
    registry: Registry[Contract] = Registry("contracts", "CONTRACT", lambda contract: contract.problems)
    assert [*registry] == ["sound"]
    (said,) = registry.broken.values()
    assert said == "it describes idd, which is not one of its columns (id): correct the name, or leave it out"


def test_a_changed_and_a_new_file_are_seen_without_an_import(contracts: Path) -> None:
    before = project.sources()
    assert project.sources() == before
    (contracts / "sound.py").write_text(SOUND.format(name="other"))
    changed = project.sources()
    (contracts / "another.py").write_text("")
    assert before != changed != project.sources()


def test_where_nothing_is_broken_nothing_is_named(contracts: Path) -> None:
    registry: Registry[Contract] = Registry("contracts", "CONTRACT")
    assert (registry.broken, registry["sound"].topic) == ({}, "sound")


def test_the_settings_are_read_once_for_all_modules(contracts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To read them for each one took four fifths of the time of a DAG file, and of the start of each task."""
    (contracts / "another.py").write_text(SOUND.format(name="another"))
    reads, load = [], configuration.load
    monkeypatch.setattr(configuration, "load", lambda: reads.append(1) or load())
    registry: Registry[Contract] = Registry("contracts", "CONTRACT", complete=with_rules)
    assert [*registry] == ["another", "sound"]
    assert len(reads) == 1
