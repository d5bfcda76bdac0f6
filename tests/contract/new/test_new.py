"""What ``lockstep new`` makes is whole: it passes the linter, the types, its own tests, and the contract tests of all."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.support.paths import CHECKOUT
from typer.testing import CliRunner

from lockstep.cli import new
from lockstep.new import make
from lockstep.new.make import NotMade, Stream

RETURNS = Stream(
    "returns",
    "events",
    "return_id STRING, returned_at TIMESTAMP, order_no BIGINT, refund DECIMAL(12,2)",
    id="return_id",
    key="order_no",
    time="returned_at",
)
SUPPLIERS = Stream(
    "suppliers", "changes", "supplier_id STRING, name STRING", id="supplier_id", key="supplier_id", time=""
)


def run(root: Path, *argv: str) -> None:
    """Run a tool of the environment on the copy."""
    env = {**os.environ, "PYTHONPATH": f"{root}/spark:{root}", "MYPYPATH": f"{root}/spark"}
    done = subprocess.run([sys.executable, "-m", *argv], cwd=root, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


@pytest.fixture(scope="module")
def made(project: Path) -> list[Path]:
    """Two streams and two views of our own."""
    paths = make.stream(project, RETURNS)
    paths += make.stream(project, SUPPLIERS)
    paths += make.view(project, "returns_per_minute", "returns")
    return paths + make.view(project, "returns_numbered", "returns", keyed=True)


def test_the_platforms_own_files_are_left_alone(project, made):
    ours = {path.relative_to(CHECKOUT) for path in (CHECKOUT / "spark").rglob("*.py")}
    changed = {p for p in ours if (project / p).exists() and (project / p).read_bytes() != (CHECKOUT / p).read_bytes()}
    assert changed == set()
    lines = sum(len((project / p).read_text().splitlines()) for p in made if p != make.SOURCES)
    assert lines < 300


def test_what_is_made_is_clean_and_typed(project, made):
    python = [str(path) for path in dict.fromkeys(made) if path.suffix == ".py"]
    run(project, "ruff", "check", *python)
    ours = [
        path.removeprefix("spark/").removesuffix(".py").replace("/", ".") for path in python if path.startswith("spark")
    ]
    # The cache of the project's own run: a first run takes half a minute.
    cache = f"--cache-dir={CHECKOUT / '.mypy_cache'}"
    run(project, "mypy", cache, *(arg for module in ours for arg in ("-m", module)))


def test_what_is_made_passes_its_own_tests_and_those_of_every_stream_and_view(project, made):
    chosen = "returns or suppliers or there_is_no_suite"
    tests = ["tests/contract/test_streams.py", "tests/unit/contracts", "tests/unit/views/test_returns_numbered.py"]
    run(
        project,
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        *tests,
        "tests/unit/views/test_returns_per_minute.py",
        "-k",
        chosen,
    )


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("page_views", "is there already"),
        ("Returns", "cannot be a name"),
        ("../returns", "cannot be a name"),
        ("class", "cannot be a name"),
        ("base", "cannot be a name"),
        ("", "cannot be a name"),
    ],
)
def test_a_name_that_is_taken_or_cannot_be_one_is_refused(project, name, reason):
    before = (project / make.SOURCES).read_text()
    with pytest.raises(NotMade, match=reason):
        make.stream(project, Stream(name, "events", "id STRING, at TIMESTAMP", id="id", key="id", time="at"))
    assert (project / make.SOURCES).read_text() == before


@pytest.mark.parametrize(
    ("name", "reads", "reason"),
    [
        ("page_views_per_minute", "page_views", "is there already"),
        ("new", "nowhere", "no stream 'nowhere'"),
        ("new", "../views/page_views_per_minute", "no stream"),
        ("new", "users", "a table's changes"),
        ("per-minute", "page_views", "cannot be a name"),
    ],
)
def test_a_view_that_cannot_be_is_refused(project, name, reads, reason):
    with pytest.raises(NotMade, match=reason):
        make.view(project, name, reads)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"schema": "id STRING,at TIMESTAMP"}, "is not a column"),
        ({"schema": 'id STRING, at TIMESTAMP")'}, "is not a column"),
        ({"schema": "id STRING, id STRING, at TIMESTAMP"}, "named twice"),
        ({"key": "other"}, "key 'other' is not one of the columns"),
        ({"time": "id"}, "a stream's time is a TIMESTAMP"),
        ({"time": ""}, "time '' is not one of the columns"),
        ({"kind": "tables"}, "no kind 'tables'"),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(project, wrong, reason):
    stream = {"kind": "events", "schema": "id STRING, at TIMESTAMP", "id": "id", "key": "id", "time": "at"} | wrong
    with pytest.raises(NotMade, match=reason):
        make.stream(project, Stream("unheard_of", **stream))


def test_the_readme_shows_what_is_made_and_how_many_lines_it_is(tmp_path, monkeypatch):
    for tree in ("spark/lockstep/contracts", "spark/lockstep/views", "expectations", "dbt/models", "tests"):
        shutil.copytree(CHECKOUT / tree, tmp_path / tree, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr(commands, "CHECKOUT", tmp_path)
    readme = (CHECKOUT / "README.md").read_text()
    (block,) = re.findall(r"```shell\n(lockstep new .*?)```", readme, re.DOTALL)
    lines = 0
    for line in block.replace("\\\n", " ").splitlines():
        if line.startswith("lockstep new "):
            done = CliRunner().invoke(new.app, shlex.split(line)[2:])
            assert done.exit_code == 0, done.output
            lines += sum(int(found) for found in re.findall(r"(\d+) lines", done.output))
    assert f"They write {lines} lines" in readme
    for path, shown in re.findall(r"```python\n# (spark/lockstep/\S+)\n(.*?)```", readme, re.DOTALL):
        assert shown in (tmp_path / path).read_text()


@pytest.mark.parametrize("text", ["version: 2\nsources: []\n", "version: 2\n", "", "sources: [\n"])
def test_sources_without_the_layer_are_refused_and_nothing_is_written(project, text):
    before = (project / make.SOURCES).read_text()
    (project / make.SOURCES).write_text(text)
    try:
        with pytest.raises(
            NotMade, match=r"unheard_of cannot be added to the source 'silver' of dbt/models/sources\.yml"
        ):
            make.stream(
                project, Stream("unheard_of", "events", "id STRING, at TIMESTAMP", id="id", key="id", time="at")
            )
        assert not (project / "spark/lockstep/contracts/unheard_of.py").exists()
    finally:
        (project / make.SOURCES).write_text(before)


def test_dbt_keeps_its_sources_in_order(project, made):
    names = [
        line.split()[-1]
        for line in (project / make.SOURCES).read_text().splitlines()
        if line.startswith("      - name")
    ]
    silver = names[: names.index("users") + 1]
    assert silver == sorted(silver)
    assert {"returns", "suppliers"} < set(silver)
    assert {"returns_per_minute", "returns_numbered"} < set(names[len(silver) :])
