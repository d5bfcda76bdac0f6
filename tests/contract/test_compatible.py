"""``lockstep compatible`` holds the contracts of the working tree against a version that git has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lockstep.new import init, make
from lockstep.new.make import Stream
from lockstep.settings import Settings

COLUMNS = {"id": "STRING", "at": "TIMESTAMP", "total": "BIGINT"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a stream of each format, in git."""
    root = tmp_path / "acme"
    init.project(root)
    settings = Settings(project=root)
    for form in ("json", "avro", "protobuf"):
        make.stream(settings, Stream(f"in_{form}", "events", COLUMNS, id="id", key="id", time="at", format=form))
    git = ["git", "-C", str(root), "-c", "user.name=Ann", "-c", "user.email=ann@example.org"]
    for arguments in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "first"], ["tag", "v1"]):
        subprocess.run([*git, *arguments], check=True)
    return root


def run(project: Path, *arguments: str) -> tuple[int, str]:
    env = {**os.environ, "LOCKSTEP_PROJECT": str(project)}
    command = [sys.executable, "-m", "lockstep.cli", "compatible", *arguments]
    done = subprocess.run(command, env=env, cwd=project, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def change(project: Path, file: str, before: str, after: str) -> None:
    path = project / "spark" / "acme" / "contracts" / file
    assert before in path.read_text()
    path.write_text(path.read_text().replace(before, after))
    # Python takes its compiled file for that of a source of the same length and the same second.
    later = path.stat().st_mtime + 2
    os.utime(path, (later, later))


def test_an_incompatible_change_of_each_format_is_named_before_it_ships(project: Path) -> None:
    code, said = run(project, "--against", "v1")
    assert (code, said.count("keeps what it promised at v1")) == (0, 3)
    change(project, "in_json.py", '"total": "BIGINT"', '"total": "STRING"')
    change(project, "in_avro.avsc", '"long"\n', '"string"\n')
    change(project, "in_avro.py", '"total": "BIGINT"', '"sum": "BIGINT"')
    change(project, "in_protobuf.proto", "int64 total = 3", "int64 total = 4")
    code, said = run(project)
    assert code == 1
    assert "in_json: the column total is of type BIGINT, and declared as STRING" in said
    assert "in_avro.py: in_avro.avsc: its schema has no field sum" in said
    assert (
        "in_protobuf: its schema cannot read what the one before has written: InProtobuf.total had the number 3" in said
    )


def test_a_version_that_git_does_not_have_is_named(project: Path) -> None:
    code, said = run(project, "--against", "v2")
    assert code == 1
    assert "at v2" in said
    assert "Name a version that it has, with --against" in said
