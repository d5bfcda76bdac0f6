"""Every corruption of a Delta log is detected, by itself or by what was known of it before."""

import json
import shutil
from pathlib import Path

import pytest

from lockstep import lake
from lockstep.definition.tables import bronze_of
from lockstep.errors import LedgerBroken
from lockstep.ingest.bronze import ingest
from lockstep.lake import writes
from lockstep.ledger import integrity


@pytest.fixture
def table(spark, settings, stream, shop, monkeypatch):
    """Bronze in four commits of Spark, with a checkpoint at version 2, known to be whole."""
    monkeypatch.setattr(writes, "SMALL_ROWS", 0)
    for n in range(3):
        shop.view(f"e{n}", n)
        shop.flush()
        ingest(spark, settings, stream, "run")
        if n == 0:
            spark.sql(f"ALTER TABLE {bronze_of(stream)} SET TBLPROPERTIES ('delta.checkpointInterval' = '2')")
    assert integrity.examine(settings, bronze_of(stream)) == []
    return bronze_of(stream)


def commit(version):
    return f"_delta_log/{version:020d}.json"


def remove(root, path):
    (root / path).unlink()


def cut(root, path):
    (root / path).write_bytes((root / path).read_bytes()[:-40])


def flip(root, path):
    """One letter in the writer's own record: still JSON, still the same sums."""
    text = (root / path).read_text()
    assert "code_version" in text
    (root / path).write_text(text.replace("code_version", "code_versioo", 1))


def last_line(root, path):
    lines = (root / path).read_text().splitlines()
    (root / path).write_text("\n".join(lines[:-1]))


CASES = [
    (remove, commit(4), "version 4 is missing: the newest commit is gone"),
    (remove, commit(3), "version 3 is missing: a commit in the middle is gone"),
    (cut, commit(3), "version 3 is not what it was"),
    (flip, commit(3), "version 3 is not what it was"),
    (last_line, commit(3), "version 3 is not what it was"),
    (remove, "_delta_log/00000000000000000004.checkpoint.parquet", "which _last_checkpoint names, is missing"),
    (cut, "_delta_log/00000000000000000004.checkpoint.parquet", "the checkpoint of version 4 cannot be read"),
    (cut, "_delta_log/_last_checkpoint", "_last_checkpoint cannot be read"),
]
# Where nobody has looked at the commits since they were written.
UNSEEN = [
    (remove, commit(3), "version 3 is missing: a commit in the middle is gone"),
    (cut, commit(3), "version 3 cannot be read"),
    (remove, "data", "is missing. Restore it"),
    (cut, "data", "and the log says"),
]


def test_every_corruption_of_a_delta_log_is_detected(spark, settings, stream, table):
    root = Path(lake.path(settings, table))
    kept = root.with_name(f"{root.name}_kept")
    data = next(file.name for file in root.glob("*.parquet"))
    shutil.copytree(root, kept)
    try:
        for cases, known in ((CASES, True), (UNSEEN, False)):
            name = table if known else f"{table}_unseen"
            place = Path(lake.path(settings, name))
            for damage, path, message in cases:
                shutil.rmtree(place, ignore_errors=True)
                shutil.copytree(kept, place)
                damage(place, data if path == "data" else path)
                found = integrity.examine(settings, name)
                assert any(message in finding.problem for finding in found), f"{damage.__name__} {path}: {found}"
            shutil.rmtree(place)
        shutil.copytree(kept, root)
        remove(root, commit(4))
        with pytest.raises(LedgerBroken, match="newest commit is gone"):
            ingest(spark, settings, stream, "next")
    finally:
        # Nobody else's server must meet what this test has broken.
        for place in (root, Path(lake.path(settings, f"{table}_unseen"))):
            shutil.rmtree(place, ignore_errors=True)
        kept.rename(root)
    assert integrity.examine(settings, table) == []


def test_a_bit_in_the_statistics_differs_from_deltas_own_checksum(settings, table):
    root = Path(lake.path(settings, table))
    unseen = f"{table}_unseen"
    shutil.copytree(root, lake.path(settings, unseen))
    file = Path(lake.path(settings, unseen), commit(3))
    actions = [json.loads(line) for line in file.read_text().splitlines()]
    for action in actions:
        if "add" in action:
            action["add"]["size"] += 1
    file.write_text("\n".join(json.dumps(action) for action in actions))
    try:
        assert any("differ on part-" in finding.problem for finding in integrity.problems(settings, unseen))
    finally:
        shutil.rmtree(lake.path(settings, unseen))


def test_a_small_commit_is_known_from_the_moment_it_was_written(spark, settings, stream, shop):
    for n in range(2):
        shop.view(f"e{n}", n)
        shop.flush()
        entry = ingest(spark, settings, stream, "run")
    file = Path(lake.path(settings, entry.table), commit(entry.version))
    whole = file.read_text()
    assert "delta-rs" in whole
    assert integrity.problems(settings, entry.table) == []
    # Still JSON, and no checksum file of Delta's own tells it.
    file.write_text(whole.replace('"numRecords\\":1', '"numRecords\\":2'))
    assert file.read_text() != whole
    (found,) = integrity.problems(settings, entry.table)
    file.write_text(whole)
    assert f"version {entry.version} is not what it was" in found.problem
