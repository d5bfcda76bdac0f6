"""Which files a copy of a checkpoint needs."""

import pytest
from tests.support.checkpoints import SST, write

from lockstep.checkpoints.problems import problems
from lockstep.checkpoints.take_savepoint import needed_files
from lockstep.live.checkpoint import Checkpoint


def test_a_copy_of_the_needed_files_is_whole(root, tmp_path):
    checkpoint = Checkpoint(str(root))
    for path in needed_files(checkpoint, 3):
        write(tmp_path / "copy", path, checkpoint.read(path))
    copied = Checkpoint(str(tmp_path / "copy"))
    assert list(problems(copied, {}, None)) == []
    assert copied.position() == checkpoint.position()
    assert copied.read("state/0/1/SSTs/9-a.sst") == SST


def test_files_that_a_restart_does_not_read_are_not_copied(root):
    needed = needed_files(Checkpoint(str(root)), 3)
    assert "offsets/0" not in needed
    assert "state/0/1/2.changelog" not in needed, "the snapshot stands for it"
    assert {"offsets/2", "offsets/3", "commits/3", "metadata", "sources/0/0", "state/0/0/1.changelog"} <= {*needed}


@pytest.mark.parametrize("missing", ["state/0/0/1.changelog", "state/0/1/SSTs/9-a.sst"])
def test_a_copy_without_a_needed_file_is_broken(root, tmp_path, missing):
    checkpoint = Checkpoint(str(root))
    for path in needed_files(checkpoint, 3):
        if path != missing:
            write(tmp_path / "copy", path, checkpoint.read(path))
    assert [p.path for p in problems(Checkpoint(str(tmp_path / "copy")), {}, None)] == [missing]
