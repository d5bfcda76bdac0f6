"""What a copy of a checkpoint must have, and what must change in it."""

import json

import pytest
from tests.support.checkpoints import SST, write

from lockstep.checkpoints.savepoints import needed, relocated
from lockstep.checkpoints.verify import problems
from lockstep.live.checkpoint import Checkpoint


def test_a_copy_of_the_needed_files_is_whole(root, tmp_path):
    checkpoint = Checkpoint(str(root))
    for path in needed(checkpoint, 3):
        write(tmp_path / "copy", path, checkpoint.read(path))
    copied = Checkpoint(str(tmp_path / "copy"))
    assert list(problems(copied, {}, None)) == []
    assert copied.position() == checkpoint.position()
    assert copied.read("state/0/1/SSTs/9-a.sst") == SST


def test_it_leaves_out_what_a_restart_does_not_read(root):
    found = needed(Checkpoint(str(root)), 3)
    assert "offsets/0" not in found
    assert "state/0/1/2.changelog" not in found, "the snapshot stands for it"
    assert {"offsets/2", "offsets/3", "commits/3", "metadata", "sources/0/0", "state/0/0/1.changelog"} <= {*found}


@pytest.mark.parametrize("missing", ["state/0/0/1.changelog", "state/0/1/SSTs/9-a.sst"])
def test_a_file_that_is_needed_cannot_be_left_out(root, tmp_path, missing):
    checkpoint = Checkpoint(str(root))
    for path in needed(checkpoint, 3):
        if path != missing:
            write(tmp_path / "copy", path, checkpoint.read(path))
    assert [p.path for p in problems(Checkpoint(str(tmp_path / "copy")), {}, None)] == [missing]


@pytest.mark.parametrize(
    ("was", "to", "now"),
    [
        ("file:/lake/_checkpoints/a/1/state/0/_stateSchema/x", "/lake/_checkpoints/b/2", "file:/lake/_checkpoints/b/2"),
        (
            "s3a://lake/_checkpoints/a/1/state/0/_stateSchema/x",
            "s3a://lake/_checkpoints/b/2",
            "s3a://lake/_checkpoints/b/2",
        ),
    ],
)
def test_the_schema_of_a_copy_is_its_own(was, to, now):
    described = {"operatorInfo": {}, "stateStoreInfo": [{"storeName": "default", "stateSchemaFilePaths": [was]}]}
    moved = relocated(f"v2\n{json.dumps(described)}", to)
    assert moved.startswith("v2\n")
    store = json.loads(moved.partition("\n")[2])["stateStoreInfo"][0]
    assert store == {"storeName": "default", "stateSchemaFilePaths": [f"{now}/state/0/_stateSchema/x"]}
