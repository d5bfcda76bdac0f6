"""Savepoints: named copies of a query's checkpoint after one batch, and of its table's rows then, with a SHA-256 of each file.

``<lake>/_savepoints/<query>/<name>/`` has ``manifest.json``, ``checkpoint/`` and ``rows/`` (Parquet). The copy is complete, so
nothing else has to be kept for its sake. :mod:`~lockstep.checkpoints.take_savepoint` writes savepoints; this module reads them.
"""

import hashlib
import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from lockstep.checkpoints.checksums import write_with_checksum
from lockstep.checkpoints.errors import ActionRefused, CheckpointBroken
from lockstep.checkpoints.fields import SAVEPOINT_NAME
from lockstep.live.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.settings import Settings

MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Savepoint:
    """The manifest of a savepoint.

    Args:
        batch: the last batch that it covers.
        offsets: per topic and partition, the next offset after that batch.
        since: its generation wrote rows from this instant (ISO, UTC) on; None: all rows.
        table_version: the version of the live table whose rows it has.
        by: who took it.
        run_id: the run that took it, if a DAG did.
        files: SHA-256 (hex) by path below the savepoint.
        reason: why it was taken; may be empty.
        streams: what the job read, where that is not what the view reads.
        label: the name under which the state has the view's keys.
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
    reason: str = ""
    streams: Sequence[str] = ()
    label: str = ""

    @property
    def reference(self) -> str:
        """``<query>/<name>``."""
        return f"{self.query}/{self.name}"

    @property
    def since_time(self) -> datetime | None:
        """``since`` as a time."""
        return datetime.fromisoformat(self.since) if self.since else None

    def to_json(self) -> str:
        """The text of the manifest."""
        return json.dumps(asdict(self), indent=1)

    @classmethod
    def from_json(cls, text: str) -> "Savepoint":
        """Parse the text of a manifest."""
        values: dict[str, Any] = json.loads(text)
        offsets = {topic: {int(p): offset for p, offset in ends.items()} for topic, ends in values["offsets"].items()}
        return cls(**{**values, "offsets": offsets, "streams": tuple(values["streams"])})

    def __str__(self) -> str:
        return f"{self.reference}: batch {self.batch} of generation {self.generation}, {len(self.files)} files saved."


def check_name(name: str) -> None:
    """Refuse what is no name for a savepoint.

    Raises:
        ActionRefused: says what a name consists of.
    """
    if not re.fullmatch(SAVEPOINT_NAME, name):
        raise ActionRefused(f"{name!r} is no name for a savepoint: use small letters, digits, - and _, at most 63.")


def savepoint_location(settings: "Settings", reference: str) -> str:
    """The location of a savepoint, ``<query>/<name>``; of ``<query>``, the directory of all its savepoints."""
    return f"{settings.lake.rstrip('/')}/_savepoints/{reference}"


def find_savepoint(settings: "Settings", reference: str) -> Savepoint | None:
    """The savepoint ``<query>/<name>``, or None. Its files are not checked."""
    try:
        return Savepoint.from_json(Checkpoint(savepoint_location(settings, reference)).read(MANIFEST).decode())
    except FileNotFoundError:
        return None


def list_savepoints(settings: "Settings", query: str) -> list[Savepoint]:
    """The query's savepoints, oldest first."""
    filesystem, root = fs.FileSystem.from_uri(savepoint_location(settings, query))
    names = [info.base_name for info in filesystem.get_file_info(fs.FileSelector(root, allow_not_found=True))]
    savepoints = (find_savepoint(settings, f"{query}/{name}") for name in names)
    return sorted((savepoint for savepoint in savepoints if savepoint), key=lambda savepoint: savepoint.taken_at)


def load_savepoint(settings: "Settings", reference: str) -> Savepoint:
    """The savepoint ``<query>/<name>``, after the SHA-256 of each of its files was checked.

    Raises:
        ActionRefused: there is no such savepoint.
        CheckpointBroken: one of its files is missing or changed.
    """
    query, _, name = reference.partition("/")
    check_name(name)
    savepoint = find_savepoint(settings, reference)
    if savepoint is None:
        names = ", ".join(other.name for other in list_savepoints(settings, query)) or "none"
        raise ActionRefused(f"{query} has no savepoint {name}; it has: {names}.")
    files = Checkpoint(savepoint_location(settings, reference))
    for path, sha256 in savepoint.files.items():
        if _sha256(files, path) != sha256:
            raise CheckpointBroken(
                f"Savepoint {reference}: {path} is missing or is not what it was. Nothing was restored: take another savepoint, "
                f"or `lockstep checkpoints reset {query} --to earliest`."
            )
    return savepoint


def savepoint_rows(spark: "SparkSession", settings: "Settings", reference: str) -> "DataFrame":
    """The rows that the query's table had when the savepoint was taken."""
    return spark.read.parquet(f"{savepoint_location(settings, reference)}/rows")


def copy_to_checkpoint(settings: "Settings", reference: str, to: str) -> None:
    """Write a savepoint's checkpoint to a location, if no query has started there. Running it twice changes nothing."""
    load_savepoint(settings, reference)
    source, target = Checkpoint(f"{savepoint_location(settings, reference)}/checkpoint"), Checkpoint(to)
    if "metadata" in target.files():
        return
    for path in source.files():
        if path != "metadata":
            content = source.read(path)
            if "/_metadata/v2/" in path:
                content = relocate_schema(content.decode(), to).encode()
            write_with_checksum(target, path, content)
    # Last, because it marks the copy as complete. It has an id of its own: two queries of one id are the same query to Spark.
    query_id = str(uuid.uuid5(uuid.NAMESPACE_URL, to))
    write_with_checksum(target, "metadata", json.dumps({"id": query_id}).encode())


def relocate_schema(text: str, to: str) -> str:
    """An operator's metadata for a checkpoint at another location. It names the files of the state's schema by absolute paths."""
    version, _, body = text.partition("\n")
    metadata = json.loads(body)
    for store in metadata["stateStoreInfo"]:
        store["stateSchemaFilePaths"] = [_relocated(path, to) for path in store.get("stateSchemaFilePaths", ())]
    return f"{version}\n{json.dumps(metadata)}"


def _relocated(path: str, to: str) -> str:
    scheme = "file:" if path.startswith("file:") and not to.startswith("file:") else ""
    return scheme + to + path[path.rindex("/state/") :]


def _sha256(files: Checkpoint, path: str) -> str | None:
    try:
        return hashlib.sha256(files.read(path)).hexdigest()
    except FileNotFoundError:
        return None
