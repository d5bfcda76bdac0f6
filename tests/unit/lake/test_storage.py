"""Directories of the lake are listed, measured and removed, whether they exist or not."""

from types import SimpleNamespace

from pyarrow import fs

from lockstep import lake
from lockstep.lake import storage


def test_a_directory_has_the_bytes_of_all_files_below_it(tmp_path):
    (tmp_path / "view" / "1").mkdir(parents=True)
    (tmp_path / "view" / "1" / "offsets").write_bytes(b"12345")
    (tmp_path / "view" / "metadata").write_bytes(b"123")
    (tmp_path / "a file").touch()
    assert lake.directories(str(tmp_path)) == ["view"]
    assert lake.size(str(tmp_path / "view")) == 8
    lake.remove(str(tmp_path / "view"))
    assert lake.directories(str(tmp_path)) == []


def test_what_does_not_exist_is_empty_and_may_be_removed(tmp_path):
    nowhere = str(tmp_path / "nowhere")
    lake.remove(nowhere)
    assert (lake.directories(nowhere), lake.size(nowhere)) == ([], 0)


def test_a_directory_is_removed_although_another_process_removes_one_of_its_files_meanwhile(tmp_path, monkeypatch):
    directory = tmp_path / "shadow"
    (directory / "_delta_log").mkdir(parents=True)
    (directory / "_delta_log" / "0.json").touch()

    class LosingAFile:
        """The local file system, in which a file goes between the listing of a directory and its removal."""

        tries = 0

        def get_file_info(self, root):
            return fs.LocalFileSystem().get_file_info(root)

        def delete_dir(self, root):
            self.tries += 1
            if self.tries == 1:
                raise FileNotFoundError(2, f"Cannot delete directory entry '{root}/part-0.parquet'")
            fs.LocalFileSystem().delete_dir(root)

    system = SimpleNamespace(from_uri=lambda _: (LosingAFile(), str(directory)))
    monkeypatch.setattr(storage, "fs", SimpleNamespace(FileSystem=system, FileType=fs.FileType))
    lake.remove(str(directory))
    assert not directory.exists()
