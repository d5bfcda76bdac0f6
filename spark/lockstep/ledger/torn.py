"""The newest commits of a Delta log that a power cut has torn: find them, and end the log before them."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from lockstep.errors import LedgerBroken
from lockstep.lake import parse_commit
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
    files, known = LogFiles(settings, table), digests(settings, table)
    torn: list[int] = []
    for version in reversed(files.versions):
        if _is_whole(files, version, known):
            break
        torn.append(version)
    return torn


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


def newest_entry(settings: "Settings", table: str, before: int | None) -> Entry | None:
    """The newest entry of the table's ledger, or the newest one before a version; None if there is none."""
    files = LogFiles(settings, table)
    versions = (v for v in reversed(files.versions) if before is None or v < before)
    commits = (parse_commit(table, v, files.commit(v).decode()) for v in versions)
    return next((entry(commit) for commit in commits if "ranges" in commit.record), None)


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


def _last_checkpoint(files: LogFiles) -> list[int]:
    try:
        return [int(json.loads(files.read("_last_checkpoint"))["version"])]
    except (ValueError, KeyError):
        return []
