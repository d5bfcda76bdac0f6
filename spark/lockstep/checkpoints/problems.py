"""Find every problem of a checkpoint: compare its files with what a restart needs, with their checksums and with the journal."""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from lockstep.checkpoints.checksums import matches_checksums, snapshot_metadata
from lockstep.checkpoints.journal import FileDigest
from lockstep.checkpoints.operators import operator_metadata, operator_numbers
from lockstep.live.checkpoint import (
    Checkpoint,
    batch_numbers,
    batch_of,
    parse_commit,
    parse_offsets,
    state_files,
    store_directories,
)

# How many of the newest batches Spark keeps in its logs, with the changes that each made to the state. A restart needs the last
# one, and Spark a snapshot of the state, which it takes every ten batches. Spark's own 100 took half a gigabyte at 100 records/s.
RETAINED = 20

Files = Mapping[str, int]
# The journal's digests of the files, by path.
Digests = Mapping[str, FileDigest]


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a checkpoint.

    Args:
        path: the file, below the checkpoint.
        description: what is wrong with it, as the end of a sentence that begins with the path.
        content: what the file contained, if the journal has it.
    """

    path: str
    description: str
    content: bytes | None = None

    @property
    def repairable(self) -> bool:
        """Whether the journal can restore the file."""
        return self.content is not None

    def __str__(self) -> str:
        return f"{self.path} {self.description}"


def problems(
    checkpoint: Checkpoint, digests: Digests, last_written: int | None, retained: int = RETAINED
) -> Iterator[Problem]:
    """Every problem of a checkpoint.

    Args:
        last_written: the newest batch that the query's table has.
        retained: how many of the newest batches Spark keeps in its logs.
    """
    files = checkpoint.files()
    if not files and not digests and last_written is None:
        # The query has not started yet.
        return
    offsets, commits = batch_numbers(files, "offsets"), batch_numbers(files, "commits")
    yield from _missing(files, digests, "metadata")
    yield from _holes(files, digests, "offsets", retained)
    yield from _holes(files, digests, "commits", retained)
    yield from _missing_ends(offsets, commits, digests, last_written)
    for number in offsets:
        yield from _damage(checkpoint, f"offsets/{number}", digests, partial(parse_offsets, number))
    for number in commits:
        yield from _damage(checkpoint, f"commits/{number}", digests, parse_commit)
    yield from (problem for path in files if _is_constant(path) for problem in _damage(checkpoint, path, digests))
    constants = (path for path in digests if _is_constant(path) and path != "metadata")
    yield from (problem for path in constants for problem in _missing(files, digests, path))
    finished = [*commits, *batch_numbers(digests, "commits")]
    if finished:
        yield from _state_problems(checkpoint, files, digests, max(finished) + 1)


def _missing(files: Files, digests: Digests, path: str) -> Iterator[Problem]:
    if path not in files:
        yield Problem(path, "is missing", digests[path].content if path in digests else None)


def _holes(files: Files, digests: Digests, log: str, retained: int) -> Iterator[Problem]:
    """The entries that a log lacks between its oldest and its newest. Spark removes the oldest entries, and no others."""
    existing, recorded = batch_numbers(files, log), batch_numbers(digests, log)
    newest = max([*existing, *recorded], default=-1)
    oldest = min([*existing, *(number for number in recorded if number > newest - retained)], default=0)
    for number in sorted(set(range(oldest, newest + 1)) - set(existing)):
        yield from _missing(files, digests, f"{log}/{number}")


def _missing_ends(
    offsets: Sequence[int], commits: Sequence[int], digests: Digests, last_written: int | None
) -> Iterator[Problem]:
    """The newest entries that a log lacks. Such a log has no hole; only what followed from an entry shows that it existed."""
    newest = max(offsets, default=-1)
    finished = {*commits[-1:], *([last_written] if last_written is not None else [])}
    for number in sorted(finished):
        if number > newest and f"offsets/{number}" not in digests:
            yield Problem(f"offsets/{number}", "is missing, although its batch is done")
    for number in range(max(commits, default=-1) + 1, newest):
        if f"commits/{number}" not in digests:
            yield Problem(f"commits/{number}", f"is missing, although batch {newest} was planned after it")


def _is_constant(path: str) -> bool:
    """Whether a file stays the same for the checkpoint's life."""
    return batch_of(path) is None and "/SSTs/" not in path and not path.endswith(".crc")


def _damage(
    checkpoint: Checkpoint, path: str, digests: Digests, parse: Callable[[str], object] | None = None
) -> Iterator[Problem]:
    """What is wrong with a file that exists."""
    content, digest = checkpoint.read(path), digests.get(path)
    original = digest.content if digest else None
    if digest and len(content) < digest.size:
        yield Problem(path, f"was cut short to {len(content)} of {digest.size} bytes", original)
    elif digest and hashlib.sha256(content).hexdigest() != digest.sha256:
        yield Problem(path, "is not what it was when it was written (its SHA-256 differs from the journal's)", original)
    elif not digest and not matches_checksums(checkpoint, path, content):
        yield Problem(path, "does not fit its checksum")
    elif parse:
        try:
            parse(content.decode())
        except (ValueError, KeyError, TypeError) as error:
            yield Problem(path, f"cannot be read ({error})", original)


def _state_problems(checkpoint: Checkpoint, files: Files, digests: Digests, version: int) -> Iterator[Problem]:
    """What is wrong with the files from which a restart loads the state."""
    operators = {}
    for number in operator_numbers([*files, *digests]):
        try:
            operators[number] = operator_metadata(checkpoint, files, digests, number)
        except (ValueError, FileNotFoundError) as error:
            yield Problem(f"state/{number}/_metadata", f"does not say what the operator is ({error})")
    if not operators and any(path.startswith("state/") for path in files):
        yield Problem("state", "has files, but no description of an operator")
    for directory in store_directories(operators):
        present, missing = state_files(files, directory, version)
        yield from (Problem(path, "is missing, and no snapshot stands for it") for path in missing)
        for path in present:
            yield from _damage(checkpoint, path, digests)
            if path.endswith(".zip"):
                yield from _snapshot_problems(checkpoint, files, digests, path)


def _snapshot_problems(checkpoint: Checkpoint, files: Files, digests: Digests, path: str) -> Iterator[Problem]:
    """What is wrong with the files of RocksDB that a snapshot lists."""
    try:
        metadata = snapshot_metadata(checkpoint.read(path))
    except ValueError as error:
        yield Problem(path, f"cannot be read ({error})")
        return
    directory = path.rpartition("/")[0]
    for entry in metadata.get("sstFiles", ()):
        sst = f"{directory}/SSTs/{entry['dfsSstFileName']}"
        if sst not in files:
            yield Problem(sst, f"is missing, and {path} needs it")
        elif files[sst] != entry["sizeBytes"]:
            yield Problem(sst, f"has {files[sst]} bytes, and {path} says {entry['sizeBytes']}")
        else:
            yield from _damage(checkpoint, sst, digests)
