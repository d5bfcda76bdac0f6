"""The stateful operators of a checkpoint: which ones it has, and the newest metadata of each."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from lockstep.checkpoints.journal import FileDigest
from lockstep.live.checkpoint import Checkpoint, parse_operator

_METADATA_FILE = re.compile(r"state/(\d+)/_metadata/")


def operator_numbers(files: Iterable[str]) -> list[int]:
    """The numbers of the stateful operators that have metadata among the files, sorted."""
    return sorted({int(match[1]) for path in files if (match := _METADATA_FILE.match(path))})


def operator_metadata(
    checkpoint: Checkpoint, files: Iterable[str], digests: Mapping[str, FileDigest], number: int
) -> dict[str, Any]:
    """The newest metadata of a stateful operator, from the journal if it has it.

    Args:
        digests: the journal's digests of the checkpoint's files, by path.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it cannot be parsed.
    """
    directory = f"state/{number}/_metadata/"
    paths = {path for path in [*files, *digests] if path.startswith(directory) and not path.endswith(".crc")}
    if not paths:
        raise FileNotFoundError("it is missing")
    newest = max(paths, key=_age)
    content = digests[newest].content if newest in digests else checkpoint.read(newest)
    return parse_operator((content or b"").decode())


def _age(path: str) -> tuple[bool, int]:
    """Later metadata is greater: version 2 of the format is newer than 1, and has a file for each change."""
    return "/v2/" in path, int(path.rpartition("/")[2]) if path[-1].isdigit() else 0
