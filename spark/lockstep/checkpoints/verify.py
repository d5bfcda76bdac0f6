"""Hold a checkpoint against what a restart needs, against its checksums, and against the journal; put back what can be.

Nothing that is missing, cut short, holed or changed is ever gone past: it is put back byte by byte from the journal, or the
query is refused before it starts.
"""

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from lockstep import lake
from lockstep.checkpoints import journal
from lockstep.checkpoints.checksums import fits, hadoop_crc, snapshot
from lockstep.checkpoints.errors import CheckpointBroken
from lockstep.checkpoints.journal import FileDigest
from lockstep.live.checkpoint import (
    Checkpoint,
    chain,
    number_of,
    numbers,
    parse_commit,
    parse_offsets,
    parse_operator,
    stores,
)

if TYPE_CHECKING:
    from lockstep.live.generations import Generation
    from lockstep.settings import Settings


_OPERATOR = re.compile(r"state/(\d+)/_metadata/")

# spark.sql.streaming.minBatchesToRetain, as the server sets it.
RETAINED = 100


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong with a checkpoint.

    Args:
        path: the file, below the checkpoint.
        what: what is wrong with it, as the end of a sentence.
        body: what the file held, where the journal has it.
    """

    path: str
    what: str
    body: bytes | None = None

    def __str__(self) -> str:
        return f"{self.path} {self.what}"


def ready(settings: "Settings", generation: "Generation") -> list[Problem]:
    """Make sure that a query can go on from its checkpoint, or begin a new one.

    Returns:
        What was wrong and has been put back.

    Raises:
        CheckpointBroken: it cannot go on; nothing was changed.
    """
    found = verify(settings, generation)
    lost = [problem for problem in found if problem.body is None]
    if lost:
        some = "; ".join(map(str, lost[:3])) + (f"; and {len(lost) - 3} more" if len(lost) > 3 else "")
        raise CheckpointBroken(
            f"{generation.query}: the checkpoint of generation {generation.number} cannot be resumed: {some}. Its query was not "
            f"started. Restore a savepoint (`lockstep checkpoints restore {generation.query} NAME`), or compute the view again "
            f"as a new generation (`lockstep checkpoints reset {generation.query} --to earliest`)."
        )
    checkpoint = Checkpoint(generation.location(settings))
    for path, body in ((problem.path, problem.body) for problem in found):
        if body is not None:
            put_back(checkpoint, path, body)
    return found


def put_back(checkpoint: Checkpoint, path: str, body: bytes) -> None:
    """Write a file of a checkpoint, and its checksum where the file system has such."""
    filesystem, root = checkpoint.open()
    folder, _, name = path.rpartition("/")
    filesystem.create_dir(f"{root}/{folder}" if folder else root, recursive=True)
    with filesystem.open_output_stream(f"{root}/{path}", compression=None) as stream:
        stream.write(body)
    if filesystem.type_name == "local":
        with filesystem.open_output_stream(f"{root}/{folder + '/' if folder else ''}.{name}.crc") as stream:
            stream.write(hadoop_crc(body))


def verify(settings: "Settings", generation: "Generation") -> list[Problem]:
    """Everything that is wrong with a generation's checkpoint; empty for one that has not begun."""
    checkpoint = Checkpoint(generation.location(settings))
    found = list(problems(checkpoint, journal.known(settings, generation), _written(settings, generation)))
    later = [n for n in _generations(generation.location(settings).rpartition("/")[0]) if n > generation.number]
    return found + [
        Problem(f"../{n}", "is a later generation, of which the control database does not know") for n in later
    ]


def _generations(location: str) -> list[int]:
    """The generations of a query that have a directory."""
    filesystem, root = fs.FileSystem.from_uri(location)
    infos = filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True))
    return sorted(int(info.base_name) for info in infos if info.base_name.isdigit())


def _written(settings: "Settings", generation: "Generation") -> int | None:
    """The newest batch of the generation that the live table holds."""
    if not lake.exists(settings, generation.table):
        return None
    for commit in lake.commits(settings, generation.table):
        if commit.record.get("writer") == "live" and commit.record.get("generation") == generation.number:
            return int(commit.record["batch_id"])
    return None


def problems(
    checkpoint: Checkpoint, known: Mapping[str, FileDigest], written: int | None, retained: int = RETAINED
) -> Iterator[Problem]:
    """Everything that is wrong with a checkpoint.

    Args:
        known: the journal's witnesses, by path.
        written: the newest batch that the query's table holds.
        retained: how many of the newest batches Spark keeps in its logs.
    """
    files = checkpoint.files()
    logs = {log: numbers(files, log) for log in ("offsets", "commits")}
    expected = {log: numbers(known, log) for log in logs}
    if not any(files) and not known and written is None:
        return
    yield from _missing(files, known, "metadata")
    for log, found in logs.items():
        newest = max([*found, *expected[log]], default=-1)
        # Spark removes the oldest, and nothing else.
        oldest = min([*found, *(n for n in expected[log] if n > newest - retained)], default=0)
        for number in sorted(set(range(oldest, newest + 1)) - set(found)):
            yield from _missing(files, known, f"{log}/{number}")
    yield from _tip(logs["offsets"], logs["commits"], known, written)
    parsers = {"offsets": lambda n, text: parse_offsets(n, text), "commits": lambda _, text: parse_commit(text)}
    for log, found in logs.items():
        for number in found:
            yield from _wrong(checkpoint, f"{log}/{number}", known, lambda text, n=number, p=parsers[log]: p(n, text))
    yield from (p for path in files if _stays(path) for p in _wrong(checkpoint, path, known))
    yield from (p for path in known if _stays(path) and path != "metadata" for p in _missing(files, known, path))
    last = max([*logs["commits"], *expected["commits"]], default=None)
    if last is not None:
        yield from _state(checkpoint, files, known, last + 1)


def _tip(
    offsets: list[int], commits: list[int], known: Mapping[str, FileDigest], written: int | None
) -> Iterator[Problem]:
    """A log whose newest entry is gone looks whole; what came of the entry says that it was there."""
    newest = max(offsets, default=-1)
    done = {*commits[-1:], *([written] if written is not None else [])}
    for number in sorted(done):
        if number > newest and f"offsets/{number}" not in known:
            yield Problem(f"offsets/{number}", "is missing, although its batch is done")
    for number in range(max(commits, default=-1) + 1, newest):
        if f"commits/{number}" not in known:
            yield Problem(f"commits/{number}", f"is missing, although batch {newest} was planned after it")


def _stays(path: str) -> bool:
    return number_of(path) is None and "/SSTs/" not in path and not path.endswith(".crc")


def _missing(files: Mapping[str, int], known: Mapping[str, FileDigest], path: str) -> Iterator[Problem]:
    if path not in files:
        yield Problem(path, "is missing", known[path].body if path in known else None)


def _wrong(checkpoint: Checkpoint, path: str, known: Mapping[str, FileDigest], parse: Any = None) -> Iterator[Problem]:
    """What is wrong with a file that is there."""
    content, before = checkpoint.read(path), known.get(path)
    body = before.body if before else None
    if before and len(content) < before.size:
        yield Problem(path, f"was cut short to {len(content)} of {before.size} bytes", body)
    elif before and hashlib.sha256(content).hexdigest() != before.sha256:
        yield Problem(path, "is not what it was when it was written (its SHA-256 differs from the journal's)", body)
    elif not before and not fits(checkpoint, path, content):
        yield Problem(path, "does not fit its checksum")
    elif parse:
        try:
            parse(content.decode())
        except (ValueError, KeyError, TypeError) as error:
            yield Problem(path, f"cannot be read ({error})", body)


def _state(
    checkpoint: Checkpoint, files: Mapping[str, int], known: Mapping[str, FileDigest], version: int
) -> Iterator[Problem]:
    """What is wrong with the files that a restart loads the state from."""
    described = {}
    for number in operators([*files, *known]):
        try:
            described[number] = operator(checkpoint, files, known, number)
        except (ValueError, FileNotFoundError) as error:
            yield Problem(f"state/{number}/_metadata", f"does not say what the operator is ({error})")
    if not described and any(path.startswith("state/") for path in files):
        yield Problem("state", "has files, but no description of an operator")
    for directory in stores(described):
        present, missing = chain(files, directory, version)
        yield from (Problem(path, "is missing, and no snapshot stands for it") for path in missing)
        for path in present:
            yield from _wrong(checkpoint, path, known)
            if path.endswith(".zip"):
                yield from _snapshot(checkpoint, files, known, path)


def operators(files: Iterable[str]) -> list[int]:
    """The numbers of the stateful operators of a checkpoint."""
    return sorted({int(found[1]) for path in files if (found := _OPERATOR.match(path))})


def operator(checkpoint: Checkpoint, files: Iterable[str], known: Mapping[str, FileDigest], number: int) -> dict[str, Any]:
    """The newest description of a stateful operator; from the journal, where that has it."""
    mine = {
        path for path in [*files, *known] if path.startswith(f"state/{number}/_metadata/") and not path.endswith(".crc")
    }
    if not mine:
        raise FileNotFoundError("it is missing")
    newest = max(mine, key=lambda path: ("/v2/" in path, int(path.rpartition("/")[2]) if path[-1].isdigit() else 0))
    body = known[newest].body if newest in known else checkpoint.read(newest)
    return parse_operator((body or b"").decode())


def _snapshot(
    checkpoint: Checkpoint, files: Mapping[str, int], known: Mapping[str, FileDigest], path: str
) -> Iterator[Problem]:
    try:
        described = snapshot(checkpoint.read(path))
    except ValueError as error:
        yield Problem(path, f"cannot be read ({error})")
        return
    folder = path.rpartition("/")[0]
    for one in described.get("sstFiles", ()):
        sst = f"{folder}/SSTs/{one['dfsSstFileName']}"
        if sst not in files:
            yield Problem(sst, f"is missing, and {path} needs it")
        elif files[sst] != one["sizeBytes"]:
            yield Problem(sst, f"has {files[sst]} bytes, and {path} says {one['sizeBytes']}")
        else:
            yield from _wrong(checkpoint, sst, known)
