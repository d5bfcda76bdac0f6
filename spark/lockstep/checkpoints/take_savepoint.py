"""Take a savepoint of a query. Spark never changes a file of a finished batch, so the query may run meanwhile."""

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from pyarrow import fs
from tenacity import retry, retry_if_exception_type, stop_after_attempt

from lockstep import lake
from lockstep.checkpoints.checksums import snapshot_metadata, write_with_checksum
from lockstep.checkpoints.errors import ActionRefused
from lockstep.checkpoints.operators import operator_metadata, operator_numbers
from lockstep.checkpoints.savepoints import MANIFEST, Savepoint, check_name, find_savepoint, savepoint_location
from lockstep.checkpoints.verify import ensure_whole
from lockstep.live.checkpoint import Checkpoint, batch_of, state_files, store_directories
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.live.generation import Generation
    from lockstep.settings import Settings


def take_savepoint(
    spark: "SparkSession",
    settings: "Settings",
    generation: "Generation",
    name: str,
    by: str,
    reason: str = "",
    run_id: str | None = None,
) -> Savepoint:
    """Copy the files that the query needs after its last finished batch, and the rows that its table had then.

    Args:
        run_id: the run that asks; when the same run asks again, it gets the savepoint that it took.

    Raises:
        ActionRefused: the name is malformed or in use, or no batch is finished yet.
        CheckpointBroken: the checkpoint has a problem that cannot be repaired.
    """
    check_name(name)
    existing = find_savepoint(settings, f"{generation.query}/{name}")
    if existing is not None and run_id is not None and existing.run_id == run_id:
        return existing
    if existing is not None:
        raise ActionRefused(f"{generation.query} has a savepoint {name} already: choose another name.")
    ensure_whole(settings, [generation])
    source = Checkpoint(generation.location(settings))
    last, contents = _read_needed(source)
    if last is None:
        raise ActionRefused(f"{generation.query} has no batch that is done yet: there is nothing to save.")
    location = savepoint_location(settings, f"{generation.query}/{name}")
    _remove_unfinished(location)
    for path, content in contents.items():
        write_with_checksum(Checkpoint(f"{location}/checkpoint"), path, content)
    version = _version_after(settings, generation, last)
    rows = lake.read(spark, settings, generation.table, version).coalesce(1)
    rows.write.mode("overwrite").parquet(f"{location}/rows")
    savepoint = Savepoint(
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
        files=_digests(Checkpoint(location)),
        reason=reason,
        streams=generation.job.streams,
        label=generation.key_label,
    )
    # Last: a directory without a manifest is no savepoint.
    write_with_checksum(Checkpoint(location), MANIFEST, savepoint.to_json().encode())
    return savepoint


# Spark may remove the oldest files while they are read. A second attempt starts from a newer batch.
@retry(retry=retry_if_exception_type(FileNotFoundError), stop=stop_after_attempt(3), reraise=True)
def _read_needed(source: Checkpoint) -> tuple[int | None, dict[str, bytes]]:
    """The last finished batch, and the contents of the files that a query needs after it."""
    last = source.last_batch()
    return last, {path: source.read(path) for path in needed_files(source, last)} if last is not None else {}


def needed_files(checkpoint: Checkpoint, last: int) -> list[str]:
    """The files from which a query continues after a batch: two entries of each log, the state, and the constant files."""
    files = checkpoint.files()
    logs = [f"{log}/{n}" for log in ("offsets", "commits") for n in (last - 1, last) if f"{log}/{n}" in files]
    constants = [
        path
        for path in files
        if batch_of(path) is None and "/SSTs/" not in path and not path.endswith((".changelog.crc", ".zip.crc"))
    ]
    state = []
    operators = {number: operator_metadata(checkpoint, files, {}, number) for number in operator_numbers(files)}
    for directory in store_directories(operators):
        present, _ = state_files(files, directory, last + 1)
        state += present + [f"{path}.crc" for path in present if f"{path}.crc" in files]
        for path in present:
            if path.endswith(".zip"):
                entries = snapshot_metadata(checkpoint.read(path)).get("sstFiles", ())
                state += [f"{directory}/SSTs/{entry['dfsSstFileName']}" for entry in entries]
    return sorted({*logs, *constants, *state})


def _version_after(settings: "Settings", generation: "Generation", batch: int) -> int:
    """The newest version of the live table that has no rows of a later batch."""
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


def _remove_unfinished(location: str) -> None:
    """Remove the files of an attempt that ended before it wrote its manifest."""
    filesystem, root = fs.FileSystem.from_uri(location)
    if filesystem.get_file_info(root).type != fs.FileType.NotFound:
        filesystem.delete_dir(root)


def _digests(savepoint: Checkpoint) -> dict[str, str]:
    return {path: hashlib.sha256(savepoint.read(path)).hexdigest() for path in savepoint.files() if path != MANIFEST}
