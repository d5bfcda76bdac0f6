"""Every way in which a checkpoint can break is found, and a whole checkpoint has no problem."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.checkpoints import write

from lockstep.checkpoints.checksums import write_with_checksum
from lockstep.checkpoints.journal import FileDigest
from lockstep.checkpoints.problems import problems
from lockstep.live.checkpoint import Checkpoint, batch_of


def journal_of(root: Path) -> dict[str, FileDigest]:
    checkpoint = Checkpoint(str(root))
    return {
        path: FileDigest.of(path, checkpoint.read(path)) for path in checkpoint.files() if not path.endswith(".crc")
    }


def broken_files(
    root: Path, digests: dict[str, FileDigest] | None = None, last_written: int | None = None
) -> dict[str, bool]:
    """The broken files, and whether each can be restored from the journal."""
    return {p.path: p.repairable for p in problems(Checkpoint(str(root)), digests or {}, last_written)}


def test_a_whole_checkpoint_has_no_problem(root):
    assert broken_files(root) == {}
    assert broken_files(root, journal_of(root), last_written=3) == {}


def test_a_query_that_has_not_started_has_no_problem(tmp_path):
    assert broken_files(tmp_path / "none") == {}


def test_an_unfinished_batch_is_no_problem(root):
    write(root, "offsets/4", b'v1\n{}\n{"page_views":{"0":50,"1":35}}')
    write(root, "state/0/0/5.changelog", b"half of it", checksum=False)
    assert broken_files(root, journal_of(root), last_written=4) == {}


def test_old_files_that_spark_has_removed_are_no_problem(root):
    digests = journal_of(root)
    for path in ("offsets/0", "commits/0", "state/0/1/2.changelog", "state/0/1/1.changelog.crc"):
        (root / path).unlink()
    checkpoint = Checkpoint(str(root))
    assert list(problems(checkpoint, digests, last_written=3, retained=3)) == []
    assert {p.path for p in problems(checkpoint, digests, last_written=3, retained=4)} == {"offsets/0", "commits/0"}


def remove(path: str) -> Callable[[Path], None]:
    return lambda root: (root / path).unlink()


def cut(path: str) -> Callable[[Path], None]:
    return lambda root: (root / path).write_bytes((root / path).read_bytes()[:-5])


def flip(path: str) -> Callable[[Path], None]:
    def change(root: Path) -> None:
        content = bytearray((root / path).read_bytes())
        content[len(content) // 2] ^= 1
        (root / path).write_bytes(content)

    return change


LOGS = ["metadata", "offsets/1", "offsets/2", "offsets/3", "commits/2", "commits/3", "sources/0/0"]
DESCRIPTIONS = ["state/0/_metadata/metadata", "state/0/0/_metadata/schema"]
STATE = ["state/0/0/1.changelog", "state/0/0/4.changelog", "state/0/1/2.zip", "state/0/1/SSTs/9-a.sst"]


@pytest.mark.parametrize("break_it", [remove, cut, flip])
@pytest.mark.parametrize("path", LOGS + DESCRIPTIONS)
def test_a_broken_log_is_found_and_restored_from_the_journal(root, path, break_it):
    digests, before = journal_of(root), (root / path).read_bytes()
    break_it(path)(root)
    assert broken_files(root, digests) == {path: True}
    for problem in list(problems(Checkpoint(str(root)), digests, None)):
        write_with_checksum(Checkpoint(str(root)), problem.path, problem.content)
    assert broken_files(root) == {}
    assert (root / path).read_bytes() == before


@pytest.mark.parametrize("break_it", [remove, cut, flip])
@pytest.mark.parametrize("path", STATE)
def test_broken_state_is_found_and_cannot_be_restored(root, path, break_it):
    digests = journal_of(root)
    break_it(path)(root)
    broken = broken_files(root, digests)
    assert broken, f"{path} is broken, and no problem was found"
    assert not any(broken.values())


@pytest.mark.parametrize("break_it", [cut, flip])
@pytest.mark.parametrize("path", LOGS + DESCRIPTIONS + STATE)
def test_checksums_show_what_is_broken_in_files_that_are_not_in_the_journal_yet(root, path, break_it):
    break_it(path)(root)
    assert path in broken_files(root)


@pytest.mark.parametrize(
    ("removed", "problem"),
    [
        (["metadata"], "metadata"),
        (["offsets/1"], "offsets/1"),
        (["commits/1"], "commits/1"),
        (["offsets/3"], "offsets/3"),
        (["state/0/_metadata/metadata"], "state"),
        (["state/0/1/3.changelog"], "state/0/1/3.changelog"),
        (["state/0/1/SSTs/9-a.sst"], "state/0/1/SSTs/9-a.sst"),
    ],
)
def test_holes_are_found_without_a_journal(root, removed, problem):
    for path in removed:
        (root / path).unlink()
    assert problem in broken_files(root)


def test_two_batches_without_a_commit_are_found(root):
    write(root, "offsets/4", b'v1\n{}\n{"page_views":{"0":50,"1":35}}')
    (root / "commits/3").unlink()
    assert broken_files(root) == {"commits/3": False}


def test_a_newest_batch_that_both_logs_lack_is_found_by_the_table_and_by_the_journal(root):
    digests = journal_of(root)
    (root / "offsets/3").unlink()
    (root / "commits/3").unlink()
    assert broken_files(root, last_written=3) == {"offsets/3": False}
    assert broken_files(root, digests) == {"offsets/3": True, "commits/3": True}


def test_a_checkpoint_without_any_files_is_found(root):
    digests = journal_of(root)
    assert {path for path in digests if batch_of(path) == 3} <= broken_files(root / "missing", digests).keys()
    assert broken_files(root / "missing", last_written=3) != {}
