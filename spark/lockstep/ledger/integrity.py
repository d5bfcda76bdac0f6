"""Hold a table's Delta log against itself, against its files, and against what its commits were when they were last looked at.

Reads only, and without Spark. A log can show its own holes and torn files, but neither a missing tip nor a changed byte: for
these, the SHA-256 of each commit that was found whole is kept in the control database.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from psycopg2.extras import execute_values
from pyarrow import fs

from lockstep import lake
from lockstep.control.database import control
from lockstep.ledger.log_files import LogFiles

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.settings import Settings


@dataclass(frozen=True)
class Finding:
    """One problem of a table's Delta log.

    Args:
        problem: a sentence that says what is wrong and what to do.
    """

    table: str
    problem: str


def problems(settings: "Settings", table: str) -> list[Finding]:
    """Everything that is wrong with the table's log; empty when all is well, or there is no such table."""
    files = LogFiles(settings, table)
    found = [*_log(files, digests(settings, table)), *_checkpoints(files)]
    if files.versions:
        found += missing_data(settings, table)
    return [Finding(table, problem) for problem in found]


def examine(settings: "Settings", table: str) -> list[Finding]:
    """The table's problems; where it has none, its new commits are written down as whole."""
    found = problems(settings, table)
    if not found:
        record_digests(settings, table)
    return found


def record_digests(settings: "Settings", table: str) -> int:
    """Write down what the table's commits are, as far as they are whole and new; return how many that were."""
    files, known = LogFiles(settings, table), digests(settings, table)
    new = {v: text for v in files.versions if v not in known and not list(_commit(files, v, text := files.commit(v)))}
    rows = [(table, version, hashlib.sha256(text).hexdigest()) for version, text in new.items()]
    oldest = files.versions[0] if files.versions else 0
    with control(settings) as connection, connection.cursor() as cursor:
        if rows:
            execute_values(cursor, "INSERT INTO log_digests VALUES %s ON CONFLICT DO NOTHING", rows)
        # Delta has cleaned up what is older.
        cursor.execute("DELETE FROM log_digests WHERE table_name = %s AND version < %s", (table, oldest))
    return len(rows)


def record_digest(connection: "Connection", settings: "Settings", table: str, version: int) -> None:
    """Write down what a commit is that was made just now. A small commit has no checksum file, as Spark's commits have."""
    digest = hashlib.sha256(LogFiles(settings, table).commit(version)).hexdigest()
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO log_digests VALUES (%s, %s, %s) ON CONFLICT DO NOTHING", (table, version, digest))


def digests(settings: "Settings", table: str) -> dict[int, str]:
    """By version, the SHA-256 of the table's commits, as they were written down."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT version, sha256 FROM log_digests WHERE table_name = %s", (table,))
        return dict(cursor.fetchall())


def _log(files: LogFiles, known: Mapping[int, str]) -> Iterator[str]:
    present = set(files.versions)
    newest = max([*present, *known], default=-1)
    oldest = min(present, default=min(known, default=0))
    for version in sorted(set(range(oldest, newest + 1)) - present):
        which = "the newest commit" if version > max(present, default=-1) else "a commit in the middle"
        yield f"version {version} is missing: {which} is gone. Restore {version:020d}.json from a backup; write nothing before."
    if oldest > 0 and present and not any(oldest - 1 <= version for version in files.checkpoints):
        yield f"its log begins with version {oldest}, and no checkpoint has what was before. Restore one from a backup."
    for version in files.versions:
        content = files.commit(version)
        if version in known and hashlib.sha256(content).hexdigest() != known[version]:
            yield (
                f"version {version} is not what it was when it was written (its SHA-256 differs from the journal's). Restore "
                f"{version:020d}.json from a backup."
            )
        else:
            yield from _commit(files, version, content)


def _commit(files: LogFiles, version: int, content: bytes) -> Iterator[str]:
    """What is wrong with one commit, by itself and beside its own checksum file."""
    try:
        actions = [json.loads(line) for line in content.decode().splitlines() if line]
    except ValueError as error:
        yield f"version {version} cannot be read ({error}). Restore {version:020d}.json from a backup."
        return
    info = next((action["commitInfo"] for action in actions if "commitInfo" in action), None)
    if info is None:
        yield f"version {version} says nothing of its writer: it was cut short. Restore {version:020d}.json from a backup."
        return
    if f"{version:020d}.crc" not in files.names:
        return
    try:
        checksum = json.loads(files.read(f"{version:020d}.crc"))
    except ValueError:
        yield f"the checksum file {version:020d}.crc cannot be read. Delta writes another with its next commit: remove it."
        return
    if checksum.get("txnId") != info.get("txnId"):
        yield f"version {version} is of another transaction than its checksum file. Restore {version:020d}.json from a backup."
    added = {action["add"]["path"]: action["add"] for action in actions if "add" in action}
    for one in checksum.get("allFiles") or ():
        mine = added.pop(one["path"], None)
        if mine is not None and (mine["size"], mine.get("stats")) != (one["size"], one.get("stats")):
            yield f"version {version} and its checksum file differ on {one['path']}. Restore {version:020d}.json from a backup."
    if added and "allFiles" in checksum:
        yield f"version {version} adds {next(iter(added))}, of which its checksum file does not know. Restore it from a backup."


def _checkpoints(files: LogFiles) -> Iterator[str]:
    """What is wrong with the log's own snapshots."""
    named: dict[str, Any] = {}
    if "_last_checkpoint" in files.names:
        try:
            named = json.loads(files.read("_last_checkpoint"))
        except ValueError:
            yield "_last_checkpoint cannot be read: remove it, and Delta looks for the checkpoints itself."
    at = named.get("version")
    if at is not None and at not in files.checkpoints:
        yield f"the checkpoint of version {at}, which _last_checkpoint names, is missing. Restore it, or remove _last_checkpoint."
    for version, names in files.checkpoints.items():
        try:
            rows = sum(files.parquet(name).metadata.num_rows for name in names)
        except (pa.ArrowException, OSError) as error:
            yield f"the checkpoint of version {version} cannot be read ({error}). Remove it if all commits since 0 are there."
            continue
        if version == at and "size" in named and rows != named["size"]:
            yield f"the checkpoint of version {version} has {rows} actions, and _last_checkpoint says {named['size']}."


def missing_data(settings: "Settings", table: str, version: int | None = None) -> Iterator[str]:
    """What is wrong with the files that a version, by default the newest, needs: they are not there, or too short."""
    location = lake.path(settings, table)
    try:
        added = DeltaTable(location, version=version).get_add_actions(flatten=True)
        actions = pa.table(added).select(["path", "size_bytes"]).to_pylist()
    except DeltaError as error:
        yield f"its log cannot be read by delta-rs ({str(error).partition(chr(10))[0]})."
        return
    filesystem, root = fs.FileSystem.from_uri(location)
    for start in range(0, len(actions), 1000):
        some = actions[start : start + 1000]
        infos = filesystem.get_file_info([f"{root}/{one['path']}" for one in some])
        for one, info in zip(some, infos, strict=True):
            if info.type == fs.FileType.NotFound:
                yield f"the data file {one['path']} is missing. Restore it from a backup, or replay the offsets that it held."
            elif info.size != one["size_bytes"]:
                yield (
                    f"the data file {one['path']} has {info.size} bytes, and the log says {one['size_bytes']}. Restore it from a "
                    "backup, or replay the offsets that it held."
                )
