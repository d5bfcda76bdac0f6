"""What ``lockstep new`` makes is whole: it passes the linter, the types, its own tests, and the contract tests of all."""

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.paths import CHECKOUT
from typer.testing import CliRunner

from lockstep.cli.main import app
from lockstep.contracts import with_schema
from lockstep.formats import codec
from lockstep.formats.json_text import json_text
from lockstep.new import make
from lockstep.new.make import Stream
from lockstep.new.render import SOURCES, NotMade, rendered
from lockstep.settings import Database, Settings

RETURNS = Stream(
    "returns",
    "events",
    {"return_id": "STRING", "returned_at": "TIMESTAMP", "order_no": "BIGINT", "refund": "DECIMAL(12,2)"},
    id="return_id",
    key="order_no",
    time="returned_at",
)
SUPPLIERS = Stream(
    "suppliers",
    "changes",
    {"supplier_id": "STRING", "name": "STRING"},
    id="supplier_id",
    key="supplier_id",
    time="",
)
VENDORS = replace(SUPPLIERS, name="vendors")

COLUMNS = {"id": "STRING", "at": "TIMESTAMP"}


def run(root: Path, *argv: str) -> None:
    """Run a tool of the environment on a project."""
    platform = CHECKOUT / "spark"
    env = {**os.environ, "PYTHONPATH": f"{root}/spark:{root}:{platform}", "MYPYPATH": f"{root}/spark:{platform}"}
    done = subprocess.run([sys.executable, "-m", *argv], cwd=root, env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def modules(made: list[Path]) -> list[str]:
    """The Python files among those that were made."""
    return [str(path) for path in dict.fromkeys(made) if path.suffix == ".py"]


def make_all(project: Settings) -> list[Path]:
    """Two streams and two views of our own."""
    paths = make.stream(project, RETURNS) + make.stream(project, SUPPLIERS)
    paths += make.view(project, "returns_per_minute", "returns")
    return paths + make.view(project, "returns_numbered", "returns", keyed=True)


@pytest.fixture(scope="module")
def made(project: Settings) -> list[Path]:
    return make_all(project)


@pytest.fixture(scope="module")
def made_in_empty(empty: Settings) -> list[Path]:
    return make_all(empty)


def test_the_platforms_own_files_are_left_alone(project, made):
    ours = {path.relative_to(CHECKOUT) for path in (CHECKOUT / "spark").rglob("*.py")}
    root = project.project
    changed = {p for p in ours if (root / p).exists() and (root / p).read_bytes() != (CHECKOUT / p).read_bytes()}
    assert changed == set()
    lines = sum(len((root / p).read_text().splitlines()) for p in made if p != SOURCES)
    assert lines < 300


def test_what_is_made_is_clean_and_typed(project, made):
    root, held = project.project, Path("tests/shop/test_views.py")
    (root / held).write_text(rendered("project/test_views.py", {"package": "shop"}))
    python = modules([*made, held])
    run(root, "ruff", "check", *python)
    typed = [path for path in python if path.startswith("spark/") or path == str(held)]
    names = [path.removeprefix("spark/").removesuffix(".py").replace("/", ".") for path in typed]
    # The cache of the repository's own run: a first run takes half a minute.
    run(root, "mypy", f"--cache-dir={CHECKOUT / '.mypy_cache'}", *(arg for name in names for arg in ("-m", name)))


def test_what_is_made_in_an_empty_project_is_clean(empty, made_in_empty):
    run(empty.project, "ruff", "check", *modules(made_in_empty), "spark", "tests")


def test_what_is_made_passes_its_own_tests_and_those_of_every_stream_and_view(project, made):
    chosen = "returns or suppliers or there_is_no_suite"
    tests = ["tests/shop/contract/test_streams.py", "tests/shop/unit/contracts"]
    tests += [f"tests/shop/unit/views/test_{name}.py" for name in ("returns_numbered", "returns_per_minute")]
    run(project.project, "pytest", "-q", "-p", "no:cacheprovider", *tests, "-k", chosen)


def test_what_is_made_in_an_empty_project_passes_its_unit_tests(empty, made_in_empty):
    run(empty.project, "pytest", "-q", "-p", "no:cacheprovider", "tests/acme/unit")


def test_columns_are_pairs_of_name_and_type():
    given = ["return_id:STRING", "refund:decimal(12, 2)"]
    assert make.columns(given) == {"return_id": "STRING", "refund": "DECIMAL(12,2)"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("page_views", "is there already"),
        ("Returns", "cannot be a name"),
        ("../returns", "cannot be a name"),
        ("class", "cannot be a name"),
        ("__init__", "cannot be a name"),
        ("", "cannot be a name"),
    ],
)
def test_a_name_that_is_taken_or_cannot_be_one_is_refused(project, name, reason):
    before = (project.project / SOURCES).read_text()
    with pytest.raises(NotMade, match=reason):
        make.stream(project, Stream(name, "events", COLUMNS, id="id", key="id", time="at"))
    assert (project.project / SOURCES).read_text() == before


@pytest.mark.parametrize(
    ("name", "reads", "reason"),
    [
        ("page_views_per_minute", "page_views", "is there already"),
        ("new", "nowhere", "no stream 'nowhere'"),
        ("new", "../views/page_views_per_minute", "no stream"),
        ("new", "users", "has the changes of a table"),
        ("per-minute", "page_views", "cannot be a name"),
    ],
)
def test_a_view_that_cannot_be_is_refused(project, name, reads, reason):
    with pytest.raises(NotMade, match=reason):
        make.view(project, name, reads)


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        (["id:STRING", "at"], "'at' is not a column"),
        (["id:STRING", 'at:TIMESTAMP")'], "is not a column"),
        (["id:STRING,at:TIMESTAMP"], "is not a column"),
        (["Id:STRING"], "is not a column"),
        (["id:TEXT"], "is not a column"),
        (["id:STRING", "id:STRING", "at:TIMESTAMP"], "named twice"),
    ],
)
def test_a_text_that_is_no_column_is_refused(columns, reason):
    with pytest.raises(NotMade, match=reason):
        make.columns(columns)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"key": "other"}, "key 'other' is not one of the columns"),
        ({"time": "id"}, "a stream's time is a TIMESTAMP"),
        ({"time": ""}, "time '' is not one of the columns"),
        ({"kind": "tables"}, "no kind 'tables'"),
    ],
)
def test_columns_that_do_not_fit_together_are_refused(project, wrong, reason):
    stream = {"kind": "events", "columns": COLUMNS, "id": "id", "key": "id", "time": "at"} | wrong
    with pytest.raises(NotMade, match=reason):
        make.stream(project, Stream("unheard_of", **stream))


@pytest.mark.parametrize(
    ("name", "columns", "key", "keyed", "reason"),
    [
        ("by_id", COLUMNS, "id", False, "every key has one row"),
        ("by_seen", COLUMNS | {"seen": "STRING"}, "seen", True, "a column seen of its own"),
        ("by_events", COLUMNS | {"events": "STRING"}, "events", False, "a column events of its own"),
    ],
)
def test_a_stream_that_the_template_cannot_read_is_refused(empty, name, columns, key, keyed, reason):
    make.stream(empty, Stream(name, "events", columns, id="id", key=key, time="at"))
    with pytest.raises(NotMade, match=reason):
        make.view(empty, f"over_{name}", name, keyed)


def test_the_readme_shows_what_is_made_and_how_many_lines_it_is(tmp_path, monkeypatch):
    readme = (CHECKOUT / "README.md").read_text()
    (block,) = re.findall(r"```shell\n(lockstep init .*?)```", readme, re.DOTALL)
    commands = [shlex.split(line) for line in block.replace("\\\n", " ").splitlines()]
    monkeypatch.chdir(tmp_path)
    lines = 0
    for program, *arguments in commands:
        if program == "cd":
            monkeypatch.chdir(Path.cwd() / arguments[0])
        elif program == "lockstep" and arguments != ["up"]:
            done = CliRunner().invoke(app, arguments)
            assert done.exit_code == 0, done.output
            lines += sum(int(found) for found in re.findall(r"(\d+) lines", done.output))
    assert f"`new` commands write {lines} lines" in readme
    shown = re.findall(r"```python\n# (spark/parcels/\S+)\n(.*?)```", readme, re.DOTALL)
    assert len(shown) == 2
    for path, text in shown:
        assert text in (Path.cwd() / path).read_text()


@pytest.mark.parametrize("text", ["version: 2\nsources: []\n", "version: 2\n", "", "sources: [\n"])
def test_sources_without_the_layer_are_refused_and_nothing_is_written(project, text):
    sources = project.project / SOURCES
    before = sources.read_text()
    sources.write_text(text)
    try:
        with pytest.raises(
            NotMade, match=r"unheard_of cannot be added to the source 'silver' of dbt/models/sources\.yml"
        ):
            make.stream(project, Stream("unheard_of", "events", COLUMNS, id="id", key="id", time="at"))
        assert not (project.project / "spark/shop/contracts/unheard_of.py").exists()
    finally:
        sources.write_text(before)


def test_dbt_keeps_its_sources_in_order(project, made):
    names = [
        line.split()[-1]
        for line in (project.project / SOURCES).read_text().splitlines()
        if line.startswith("      - name")
    ]
    silver = names[: names.index("users") + 1]
    assert silver == sorted(silver)
    assert {"returns", "suppliers"} < set(silver)
    assert {"returns_per_minute", "returns_numbered"} < set(names[len(silver) :])


EVERY_TYPE = {
    "id": "STRING",
    "at": "TIMESTAMP",
    "number": "INT",
    "total": "BIGINT",
    "share": "DOUBLE",
    "amount": "DECIMAL(12,2)",
    "day": "DATE",
    "paid": "BOOLEAN",
}


@pytest.mark.parametrize("form", ["avro", "protobuf"])
def test_a_stream_in_another_format_has_a_schema_that_producers_can_write_by(form, empty):
    new = Stream(f"visits_in_{form}", "events", EVERY_TYPE, id="id", key="id", time="at", format=form)
    contract_file, schema_file, *_ = make.stream(empty, new)
    assert schema_file.parent == contract_file.parent
    contract = with_schema(make._contract(empty, new.name), empty)
    assert contract.problems == []
    fields = {"id": "v1", "at": "2026-11-10T10:00:00+00:00", "total": 2**40, "amount": "1.20", "day": "2026-11-10"}
    read = json.loads(json_text(codec(form, contract.schema).decode(contract.encoded(fields))))
    assert read == dict.fromkeys(EVERY_TYPE) | fields


def test_a_format_that_does_not_exist_is_refused_and_changes_have_none(empty):
    with pytest.raises(NotMade, match="values are in json, avro or protobuf"):
        make.stream(empty, Stream("visits", "events", COLUMNS, id="id", key="id", time="at", format="xml"))
    with pytest.raises(NotMade, match="Debezium's JSON"):
        make.stream(empty, Stream("visits", "changes", COLUMNS, id="id", key="id", time="at", format="avro"))


def test_a_table_of_another_database_is_made_with_its_name_and_a_database_that_is_not_there_is_refused(empty):
    two = empty.model_copy(update={"databases": (Database(name="crm"),)})
    with pytest.raises(NotMade, match=r"There is no source database 'erp'.*name one of .*, crm"):
        make.stream(two, replace(VENDORS, database="erp"))
    with pytest.raises(NotMade, match="Only changes have a database"):
        make.stream(two, replace(RETURNS, name="refunds", database="crm"))
    file, *_ = make.stream(two, replace(VENDORS, database="crm"))
    names = {}
    exec((empty.project / file).read_text(), names)  # noqa: S102 - it was made here
    contract = names["CONTRACT"]
    assert (contract.database, contract.topic, contract.problems) == ("crm", "crm.public.vendors", [])
    for wrong in (replace(contract, topic="shop.public.vendors"), replace(contract, kind="events")):
        assert "its database is crm, and its topic" in wrong.problems[0]
