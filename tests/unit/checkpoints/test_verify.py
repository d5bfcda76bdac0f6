"""Every way in which a checkpoint can break is found, and only then."""

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.support.checkpoints import write

from lockstep.checkpoints.journal import FileDigest
from lockstep.checkpoints.verify import problems, put_back
from lockstep.live.checkpoint import Checkpoint, number_of


def journal_of(root: Path) -> dict[str, FileDigest]:
    checkpoint = Checkpoint(str(root))
    return {path: FileDigest.of(path, checkpoint.read(path)) for path in checkpoint.files() if not path.endswith(".crc")}


def found(root: Path, known: dict[str, FileDigest] | None = None, written: int | None = None) -> dict[str, bool]:
    """The broken files, and whether each can be put back."""
    return {p.path: p.body is not None for p in problems(Checkpoint(str(root)), known or {}, written)}


def test_a_whole_checkpoint_has_no_problem(root):
    assert found(root) == {}
    assert found(root, journal_of(root), written=3) == {}


def test_a_query_that_has_not_begun_has_no_problem(tmp_path):
    assert found(tmp_path / "none") == {}


def test_a_batch_that_was_under_way_is_no_problem(root):
    write(root, "offsets/4", b'v1\n{}\n{"page_views":{"0":50,"1":35}}')
    write(root, "state/0/0/5.changelog", b"half of it", checksum=False)
    assert found(root, journal_of(root), written=4) == {}


def test_what_spark_has_cleaned_up_is_no_problem(root):
    known = journal_of(root)
    for path in ("offsets/0", "commits/0", "state/0/1/2.changelog", "state/0/1/1.changelog.crc"):
        (root / path).unlink()
    checkpoint = Checkpoint(str(root))
    assert list(problems(checkpoint, known, written=3, retained=3)) == []
    assert {p.path for p in problems(checkpoint, known, written=3, retained=4)} == {"offsets/0", "commits/0"}


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
def test_a_broken_log_is_found_and_put_back_from_the_journal(root, path, break_it):
    known, before = journal_of(root), (root / path).read_bytes()
    break_it(path)(root)
    assert found(root, known) == {path: True}
    for problem in list(problems(Checkpoint(str(root)), known, None)):
        put_back(Checkpoint(str(root)), problem.path, problem.body)
    assert found(root) == {}
    assert (root / path).read_bytes() == before


@pytest.mark.parametrize("break_it", [remove, cut, flip])
@pytest.mark.parametrize("path", STATE)
def test_broken_state_is_found_and_cannot_be_put_back(root, path, break_it):
    known = journal_of(root)
    break_it(path)(root)
    broken = found(root, known)
    assert broken, f"{path} is broken, and nothing was found"
    assert not any(broken.values())


@pytest.mark.parametrize("break_it", [cut, flip])
@pytest.mark.parametrize("path", LOGS + DESCRIPTIONS + STATE)
def test_checksums_find_what_the_journal_has_not_seen_yet(root, path, break_it):
    break_it(path)(root)
    assert path in found(root)


@pytest.mark.parametrize(
    ("gone", "name"),
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
def test_holes_are_found_without_a_journal(root, gone, name):
    for path in gone:
        (root / path).unlink()
    assert name in found(root)


def test_two_batches_without_a_commit_are_found(root):
    write(root, "offsets/4", b'v1\n{}\n{"page_views":{"0":50,"1":35}}')
    (root / "commits/3").unlink()
    assert found(root) == {"commits/3": False}


def test_a_tip_that_is_gone_from_both_logs_is_found_by_what_was_written(root):
    known = journal_of(root)
    (root / "offsets/3").unlink()
    (root / "commits/3").unlink()
    assert found(root, written=3) == {"offsets/3": False}
    assert found(root, known) == {"offsets/3": True, "commits/3": True}


def test_a_checkpoint_that_is_gone_altogether_is_found(root):
    known = journal_of(root)
    assert {path for path in known if number_of(path) == 3} <= found(root / "elsewhere", known).keys()
    assert found(root / "elsewhere", written=3) != {}
