"""Savepoints: a named copy of what a query had done after one batch, and of its table's rows then, with a SHA-256 of each file.

``<lake>/_savepoints/<query>/<name>/`` holds ``manifest.json``, ``checkpoint/`` and ``rows/`` (Parquet): all of it, so that
nothing else has to be kept for its sake. Spark never changes a file of a done batch, so the copy is consistent while the
query runs.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyarrow import fs
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from lockstep import lake
from lockstep.checkpoints.checksums import snapshot
from lockstep.checkpoints.errors import CheckpointBroken, Refused
from lockstep.checkpoints.verify import operator, operators, put_back, ready
from lockstep.live.checkpoint import Checkpoint, chain, number_of, stores
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.live.generations import Generation
    from lockstep.settings import Settings

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}")


@dataclass(frozen=True)
class Savepoint:
    """What a savepoint's manifest says.

    Args:
        batch: the last batch that it covers.
        offsets: per topic and partition, where it goes on.
        since: rows before this instant (ISO, UTC) were not written by its generation.
        table_version: the version of the live table whose rows it has.
        files: SHA-256 (hex) by path below the savepoint.
    """

    query: str
    name: str
    generation: int
    batch: int
    offsets: Mapping[str, Mapping[int, int]]
    since: str | None
    table_version: int
    taken_at: str
    by: str
    run_id: str | None
    code_version: str
    files: Mapping[str, str]

    @property
    def reference(self) -> str:
        return f"{self.query}/{self.name}"

    @property
    def since_time(self) -> datetime | None:
        return datetime.fromisoformat(self.since) if self.since else None


def take(
    spark: "SparkSession", settings: "Settings", generation: "Generation", name: str, by: str, run_id: str | None = None
) -> Savepoint:
    """Copy what the query's last done batch needs, and the rows that the table had after it, under a name.

    Args:
        run_id: of the task that asks; when it is run again, it finds its own.

    Raises:
        Refused: the name is taken or is no name, or nothing is done yet.
        CheckpointBroken: the checkpoint is not whole.
    """
    _check_name(name)
    place = _place(settings, f"{generation.query}/{name}")
    there = _manifest(place)
    if there is not None and run_id is not None and _savepoint(there).run_id == run_id:
        return _savepoint(there)
    if there is not None:
        raise Refused(f"{generation.query} has a savepoint {name} already: choose another name.")
    ready(settings, generation)
    source = Checkpoint(generation.location(settings))
    last, copies = _copies(source)
    if last is None:
        raise Refused(f"{generation.query} has no batch that is done yet: there is nothing to save.")
    _clear(place)
    for path, content in copies.items():
        put_back(Checkpoint(f"{place}/checkpoint"), path, content)
    version = _version_after(settings, generation, last)
    held = lake.read(spark, settings, generation.table, version).coalesce(1)
    held.write.mode("overwrite").parquet(f"{place}/rows")
    saved = Savepoint(
        query=generation.query,
        name=name,
        generation=generation.number,
        batch=last,
        offsets=source.batch(last).offsets,
        since=generation.since.isoformat() if generation.since else None,
        table_version=version,
        taken_at=datetime.now(UTC).isoformat(timespec="seconds"),
        by=by,
        run_id=run_id,
        code_version=code_version(),
        files=_digests(Checkpoint(place)),
    )
    # Last: a savepoint is one when it has its manifest.
    put_back(Checkpoint(place), "manifest.json", json.dumps(asdict(saved), indent=1).encode())
    return saved


@retry(retry=retry_if_exception_type(FileNotFoundError), stop=stop_after_attempt(3), reraise=True)
def _copies(source: Checkpoint) -> tuple[int | None, dict[str, bytes]]:
    """The last done batch and its files; again where Spark removes the oldest of them meanwhile."""
    last = source.last()
    return last, {path: source.read(path) for path in needed(source, last)} if last is not None else {}


def needed(checkpoint: Checkpoint, last: int) -> list[str]:
    """The files from which a query goes on after a batch: two entries of each log, the state, and what stays the same."""
    files = checkpoint.files()
    logs = [f"{log}/{n}" for log in ("offsets", "commits") for n in (last - 1, last) if f"{log}/{n}" in files]
    stay = [
        p
        for p in files
        if number_of(p) is None and "/SSTs/" not in p and not p.endswith((".changelog.crc", ".zip.crc"))
    ]
    state = []
    described = {n: operator(checkpoint, files, {}, n) for n in operators(files)}
    for directory in stores(described):
        present, _ = chain(files, directory, last + 1)
        state += present + [f"{path}.crc" for path in present if f"{path}.crc" in files]
        for path in present:
            if path.endswith(".zip"):
                ssts = snapshot(checkpoint.read(path)).get("sstFiles", ())
                state += [f"{directory}/SSTs/{one['dfsSstFileName']}" for one in ssts]
    return sorted({*logs, *stay, *state})


def _version_after(settings: "Settings", generation: "Generation", batch: int) -> int:
    """The newest version of the live table that has nothing of a later batch."""
    version = -1
    for commit in lake.commits(settings, generation.table):
        version = max(version, commit.version)
        if commit.record.get("writer") == "live" and commit.record.get("generation") == generation.number:
            if commit.record["batch_id"] <= batch:
                return version
            version = commit.version - 1
        elif commit.record.get("generation") == generation.number:
            return version
    return version


def load(settings: "Settings", reference: str) -> Savepoint:
    """A savepoint by ``<query>/<name>``, every file of it held against its SHA-256.

    Raises:
        Refused: there is no such savepoint.
        CheckpointBroken: a file of it is missing or changed.
    """
    query, _, name = reference.partition("/")
    _check_name(name)
    place = _place(settings, reference)
    text = _manifest(place)
    if text is None:
        names = ", ".join(one.name for one in saved(settings, query)) or "none"
        raise Refused(f"{query} has no savepoint {name}; it has: {names}.")
    found = _savepoint(text)
    held = Checkpoint(place)
    for path, sha256 in found.files.items():
        try:
            same = hashlib.sha256(held.read(path)).hexdigest() == sha256
        except FileNotFoundError:
            same = False
        if not same:
            raise CheckpointBroken(
                f"Savepoint {reference}: {path} is missing or is not what it was. Nothing was restored: take another savepoint, "
                f"or `lockstep checkpoints reset {query} --to earliest`."
            )
    return found


def unpack(settings: "Settings", reference: str, to: str) -> Savepoint:
    """Make a savepoint the checkpoint at a location, where that has not begun; running it twice changes nothing."""
    saved = load(settings, reference)
    held, fresh = Checkpoint(f"{_place(settings, reference)}/checkpoint"), Checkpoint(to)
    if "metadata" in fresh.files():
        return saved
    for path in held.files():
        if path != "metadata":
            content = held.read(path)
            put_back(fresh, path, relocated(content.decode(), to).encode() if "/_metadata/v2/" in path else content)
    # Last, because it says that all is there. With an id of its own: Spark takes queries of one id for one query.
    own_id = hashlib.sha256(to.encode()).hexdigest()
    uuid = f"{own_id[:8]}-{own_id[8:12]}-4{own_id[13:16]}-a{own_id[17:20]}-{own_id[20:32]}"
    put_back(fresh, "metadata", json.dumps({"id": uuid}).encode())
    return saved


def relocated(text: str, to: str) -> str:
    """An operator's description for a checkpoint at another location: it names the files of its schema with their whole paths."""
    version, _, body = text.partition("\n")
    described = json.loads(body)
    for store in described["stateStoreInfo"]:
        store["stateSchemaFilePaths"] = [_moved(path, to) for path in store.get("stateSchemaFilePaths", ())]
    return f"{version}\n{json.dumps(described)}"


def _moved(path: str, to: str) -> str:
    scheme = "file:" if path.startswith("file:") and not to.startswith("file:") else ""
    return scheme + to + path[path.rindex("/state/") :]


def rows(spark: "SparkSession", settings: "Settings", reference: str) -> "DataFrame":
    """The rows that a savepoint's table had."""
    return spark.read.parquet(f"{_place(settings, reference)}/rows")


def saved(settings: "Settings", query: str) -> list[Savepoint]:
    """The query's savepoints, oldest first."""
    filesystem, root = fs.FileSystem.from_uri(f"{_root(settings)}/{query}")
    names = [info.base_name for info in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True))]
    texts = (_manifest(_place(settings, f"{query}/{name}")) for name in names)
    return sorted((_savepoint(text) for text in texts if text), key=lambda one: one.taken_at)


def _clear(place: str) -> None:
    """Remove what an attempt has left that never got its manifest."""
    filesystem, root = fs.FileSystem.from_uri(place)
    if filesystem.get_file_info(root).type != fs.FileType.NotFound:
        filesystem.delete_dir(root)


def _digests(place: Checkpoint) -> dict[str, str]:
    return {path: hashlib.sha256(place.read(path)).hexdigest() for path in place.files() if path != "manifest.json"}


def _savepoint(text: str) -> Savepoint:
    found: dict[str, Any] = json.loads(text)
    found["offsets"] = {t: {int(p): o for p, o in ends.items()} for t, ends in found["offsets"].items()}
    return Savepoint(**found)


def _root(settings: "Settings") -> str:
    return f"{settings.lake.rstrip('/')}/_savepoints"


def _place(settings: "Settings", reference: str) -> str:
    return f"{_root(settings)}/{reference}"


def _manifest(place: str) -> str | None:
    try:
        return Checkpoint(place).read("manifest.json").decode()
    except FileNotFoundError:
        return None


def _check_name(name: str) -> None:
    if not NAME.fullmatch(name):
        raise Refused(f"{name!r} is no name for a savepoint: use small letters, digits, - and _, at most 63.")
