"""A file is replaced as a whole: what was there, or what is there now."""

import os
import stat
from pathlib import Path

import pytest

from lockstep import atomic_files


def drafts(file: Path) -> list[Path]:
    return [path for path in file.parent.iterdir() if path != file]


def test_a_file_is_written_and_then_replaced_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "folder" / "file.json"
    atomic_files.replace(file, b"first")
    atomic_files.replace(file, b"second")
    assert file.read_bytes() == b"second"
    assert drafts(file) == []


def test_a_reader_reads_on_in_what_it_has_opened(tmp_path: Path) -> None:
    file = tmp_path / "file"
    atomic_files.replace(file, b"first")
    with file.open("rb") as reader:
        atomic_files.replace(file, b"second, which is longer")
        assert reader.read() == b"first"


def test_a_writer_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    atomic_files.replace(file, b"first")

    def fail(*_: Path) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no space left"):
        atomic_files.replace(file, b"second")
    assert file.read_bytes() == b"first"
    assert drafts(file) == []


def test_the_content_is_on_the_disk_before_the_file_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, fsync, written = tmp_path / "file", os.fsync, list[tuple[int, bool]]()

    def seen(descriptor: int) -> None:
        written.append((os.fstat(descriptor).st_size, file.exists()))
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", seen)
    atomic_files.replace(file, b"secret")
    assert written == [(len(b"secret"), False)]


def test_a_draft_is_never_more_open_than_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file, modes, replace = tmp_path / "file", list[int](), Path.replace

    def seen(draft: Path, target: Path) -> Path:
        modes.append(stat.S_IMODE(draft.stat().st_mode))
        return replace(draft, target)

    monkeypatch.setattr(Path, "replace", seen)
    atomic_files.replace(file, b"secret", 0o600)
    assert [*modes, stat.S_IMODE(file.stat().st_mode)] == [0o600, 0o600]


def test_a_file_that_is_removed_leaves_no_draft_of_a_killed_writer_and_no_other_file_is_touched(tmp_path: Path) -> None:
    file, other = tmp_path / "a[1].json", tmp_path / "a1.json"
    for path in (file, other, tmp_path / ".a[1].json.0a1b2c3d.new", tmp_path / ".a1.json.0a1b2c3d.new"):
        path.touch()
    atomic_files.remove(file)
    atomic_files.remove(file)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a1.json.0a1b2c3d.new", "a1.json"]
