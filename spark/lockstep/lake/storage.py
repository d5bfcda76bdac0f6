"""Directories of the lake, such as those of tables and checkpoints: which there are, their bytes, and their removal."""

from contextlib import suppress

from pyarrow import fs


def directories(location: str) -> list[str]:
    """The names of the directories in one (a path or URI), sorted; none if it does not exist."""
    filesystem, root = fs.FileSystem.from_uri(location)
    found = filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True))
    return sorted(info.base_name for info in found if info.type == fs.FileType.Directory)


def size(location: str) -> int:
    """The bytes of all files in a directory and below it; 0 if it does not exist."""
    filesystem, root = fs.FileSystem.from_uri(location)
    found = filesystem.get_file_info(fs.FileSelector(root, recursive=True, allow_not_found=True))
    return sum(info.size for info in found if info.type == fs.FileType.File)


def remove(location: str) -> None:
    """Remove a directory with all that is in it, if it exists."""
    filesystem, root = fs.FileSystem.from_uri(location)
    while filesystem.get_file_info(root).type == fs.FileType.Directory:
        # Another process, such as VACUUM, may remove a file at the same time.
        with suppress(FileNotFoundError):
            filesystem.delete_dir(root)
