"""The tables of the lake as Spark's catalog knows them."""

from types import SimpleNamespace

from pyarrow import fs

from lockstep import lake
from lockstep.lake import spark_catalog
from lockstep.settings import Settings


def test_a_table_is_dropped_although_another_process_removes_one_of_its_files_meanwhile(tmp_path, monkeypatch):
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
    monkeypatch.setattr(spark_catalog, "fs", SimpleNamespace(FileSystem=system, FileType=fs.FileType))
    spark = SimpleNamespace(catalog=SimpleNamespace(databaseExists=lambda _: False))
    lake.drop(spark, Settings(home=tmp_path), "shadow.one")
    assert not directory.exists()
