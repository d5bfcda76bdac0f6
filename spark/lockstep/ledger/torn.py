"""The newest commits of a Delta log that a power cut has torn: find them, and end the log before them.

Others may have noted the numbers of the versions that are gone, as those up to which they know a table's rows. So no later commit
gets such a number: the log is filled with commits that change nothing.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lockstep import lake
from lockstep.errors import LedgerBroken
from lockstep.lake import Commit, parse_commit
from lockstep.lake.small_commits import commit_nothing
from lockstep.ledger.entries import Entry, entry
from lockstep.ledger.integrity import digests
from lockstep.ledger.log_files import LogFiles

if TYPE_CHECKING:
    from psycopg2.extensions import connection as Connection

    from lockstep.settings import Settings

# Hadoop's checksum of a file has its name, with a dot before it.
_VERSION = re.compile(r"\.?(\d{20})\.")
_LAST_CHECKPOINT = {"_last_checkpoint", "._last_checkpoint.crc"}


def torn_versions(settings: "Settings", table: str) -> list[int]:
    """The newest versions of the table that are cut short, or whose data files are; up to the newest one that is whole."""
    return _torn(LogFiles(settings, table), digests(settings, table))


def _torn(files: LogFiles, known: Mapping[int, str]) -> list[int]:
    return [*takewhile(lambda version: not _is_whole(files, version, known), reversed(files.versions))]


def torn_tables(settings: "Settings") -> dict[str, list[int]]:
    """The tables of the lake whose newest commit is cut short, or has data files that are, with their torn versions.

    Of each table, the newest commit alone is read. A changed byte is not found: ``lockstep ledger verify`` looks for it.
    """
    found = (table for table in lake.tables(settings) if not _ends_whole(settings, table))
    return {table: _torn(LogFiles(settings, table), {}) for table in found}


def _ends_whole(settings: "Settings", table: str) -> bool:
    newest = lake.newest_version(settings, table)
    return newest is None or _is_whole(LogFiles(settings, table, listed=False), newest, {})


def _is_whole(files: LogFiles, version: int, known: Mapping[int, str]) -> bool:
    content = files.commit(version)
    if version in known and hashlib.sha256(content).hexdigest() != known[version]:
        return False
    try:
        actions: list[dict[str, Any]] = [json.loads(line) for line in content.decode().splitlines() if line]
    except ValueError:
        return False
    added = [action["add"] for action in actions if "add" in action]
    return any("commitInfo" in action for action in actions) and all(
        files.has_data(unquote(add["path"]), add["size"]) for add in added
    )


def commits_before(settings: "Settings", table: str, before: int | None = None) -> Iterator[Commit]:
    """The table's commits that have a ledger entry, newest first; only those before a version, if one is given."""
    files = LogFiles(settings, table)
    versions = (v for v in reversed(files.versions) if before is None or v < before)
    commits = (parse_commit(table, v, files.commit(v).decode()) for v in versions)
    return (commit for commit in commits if "ranges" in commit.record)


def newest_entry(settings: "Settings", table: str, before: int | None) -> Entry | None:
    """The newest entry of the table's ledger, or the newest one before a version; None if there is none."""
    return next(map(entry, commits_before(settings, table, before)), None)


def end_before(connection: "Connection", settings: "Settings", table: str, torn: Sequence[int]) -> list[str]:
    """End the table's log before its torn versions: put aside all files from there on.

    The digests of commits that are put aside, or that are gone, are forgotten.

    Returns:
        Where the files are now.

    Raises:
        LedgerBroken: the commits before are not all there, nor a checkpoint of them.
    """
    files = LogFiles(settings, table)
    version = min(torn, default=max(files.versions, default=-1) + 1)
    kept = [v for v in files.versions if v < version]
    checkpoints = [v for v in files.checkpoints if v < version]
    if not kept or (kept[0] > 0 and not any(kept[0] - 1 <= v for v in checkpoints)):
        raise LedgerBroken(
            f"{table}: its log would have nothing left before version {version}. Restore its _delta_log from a backup."
        )
    names = [name for name in sorted(files.names) if (found := _VERSION.match(name)) and int(found[1]) >= version]
    if "_last_checkpoint" in files.names and not any(v in checkpoints for v in _last_checkpoint(files)):
        # Delta looks for the checkpoints itself.
        names += sorted(_LAST_CHECKPOINT & files.names)
    places = [files.put_aside(name) for name in names]
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM log_digests WHERE table_name = %s AND version >= %s", (table, version))
    return places


def is_filled(settings: "Settings", table: str) -> bool:
    """Whether the log goes up to the newest version that was put aside; if not, a repair has died."""
    gone = LogFiles(settings, table).put_aside_versions()
    return (lake.newest_version(settings, table) or 0) >= max(gone, default=0)


def fill(settings: "Settings", table: str, by: str, reason: str) -> None:
    """Fill the log up to the newest version that was put aside, with commits that change nothing."""
    record = {
        "writer": "repair",
        "by": by,
        "reason": reason,
        "put_aside": LogFiles(settings, table).put_aside_versions(),
    }
    while not is_filled(settings, table):
        commit_nothing(settings, table, record)


def _last_checkpoint(files: LogFiles) -> list[int]:
    try:
        return [int(json.loads(files.read("_last_checkpoint"))["version"])]
    except (ValueError, KeyError):
        return []
