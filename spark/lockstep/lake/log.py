"""The logs of the lake's tables, read without Spark.

Only the JSON files of a Delta log are read: only they have the platform's records (``commitInfo``), and the statistics of the
files that a commit added. Deletion vectors, column mapping and checkpoints of the log do not matter for these.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pyarrow import fs

from lockstep.errors import LedgerBroken
from lockstep.lake.paths import path

if TYPE_CHECKING:
    from lockstep.settings import Settings


@dataclass(frozen=True)
class Commit:
    """One commit of a Delta table, as its log says.

    Args:
        timestamp: when it was made (milliseconds, UTC).
        operation: such as ``WRITE``, ``MERGE`` or ``OPTIMIZE``.
        rows: the number of rows that it wrote (``numOutputRows``); 0 where it wrote none.
        record: the platform's record from ``userMetadata``; empty for commits of others (OPTIMIZE, VACUUM).
        files: the statistics that Delta kept of each added file (``numRecords``, ``minValues``, ``maxValues``).
        size: the number of bytes that it wrote.
        removes: whether rows that were there before are gone, or changed.
    """

    table: str
    version: int
    timestamp: int
    operation: str
    rows: int
    record: Mapping[str, Any] = field(default_factory=dict)
    files: tuple[Mapping[str, Any], ...] = ()
    size: int = 0
    removes: bool = False


def exists(settings: "Settings", table: str) -> bool:
    """Whether the table has a log."""
    return newest_version(settings, table) is not None


def newest_version(settings: "Settings", table: str) -> int | None:
    """The newest version that the table's log has; None: it has no log."""
    return Log(settings, table).newest()


def commits(settings: "Settings", table: str) -> Iterator[Commit]:
    """The table's commits, newest first. The first ones cost the same however long the log is.

    Raises:
        LedgerBroken: a commit was cut short.
    """
    log = Log(settings, table)
    version = log.newest()
    while version is not None:
        text = log.read(version)
        if text is not None:
            yield _parsed(table, version, text)
            version -= 1
        else:
            # The log begins here, or one of its files is missing.
            version = max((older for older in log.versions() if older < version), default=None)


def _parsed(table: str, version: int, text: str) -> Commit:
    try:
        if not text.strip():
            raise ValueError("it is empty")
        return parse_commit(table, version, text)
    except ValueError as error:
        name = table.removeprefix("bronze.")
        raise LedgerBroken(
            f"{table}: version {version} was cut short ({error}), as after a power cut. `lockstep ledger repair {name}` ends the "
            f"log before it, and its rows are taken again from their source; or restore {version:020d}.json from a backup."
        ) from error


def parse_commit(table: str, version: int, text: str) -> Commit:
    """Read one file of a Delta log (one JSON action a line; Delta transaction protocol, "Delta Log Entries")."""
    actions: list[dict[str, Any]] = [json.loads(line) for line in text.splitlines() if line]
    info: dict[str, Any] = next((a["commitInfo"] for a in actions if "commitInfo" in a), {})
    metrics = info.get("operationMetrics", {})
    added = [a["add"] for a in actions if "add" in a]
    stats = (json.loads(add.get("stats") or "{}") for add in added)
    return Commit(
        table=table,
        version=version,
        timestamp=info.get("timestamp", 0),
        operation=info.get("operation", ""),
        rows=_rows(metrics),
        record=_record(info.get("userMetadata")),
        files=tuple(s for s in stats if s),
        size=int(metrics.get("numOutputBytes", sum(add["size"] for add in added))),
        removes=any(a["remove"].get("dataChange", True) for a in actions if "remove" in a),
    )


def _rows(metrics: Mapping[str, Any]) -> int:
    # Spark's name, and those of delta-rs for a MERGE and for an append.
    names = ("numOutputRows", "num_output_rows", "num_added_rows")
    return next((int(metrics[name]) for name in names if name in metrics), 0)


class Log:
    """The files of a Delta log. A directory with all commits of a year is slow to list, so it is listed only where it must be.

    Args:
        table: ``layer.name``.
    """

    def __init__(self, settings: "Settings", table: str) -> None:
        self._filesystem, root = fs.FileSystem.from_uri(path(settings, table))
        self._root = f"{root}/_delta_log"

    def newest(self) -> int | None:
        """The newest version: looked for from the last checkpoint of the log on, in steps that double."""
        low = self._last_checkpoint()
        if not self._has(low):
            return max(self.versions(), default=None)
        step = 1
        while self._has(low + step):
            low, step = low + step, step * 2
        high = low + step
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self._has(middle) else (low, middle)
        return low

    def versions(self) -> list[int]:
        """All versions, by listing the directory."""
        selector = fs.FileSelector(self._root, allow_not_found=True)
        names = (info.base_name for info in self._filesystem.get_file_info(selector))
        return [int(name[:20]) for name in names if len(name) == 25 and name.endswith(".json")]

    def read(self, version: int) -> str | None:
        """A version's file; None: there is none."""
        return self.text(f"{version:020d}.json")

    def text(self, name: str) -> str | None:
        """The content of a file; None: there is none."""
        try:
            # By its name alone, the file is not compressed.
            with self._filesystem.open_input_stream(f"{self._root}/{name}", compression=None) as stream:
                return str(stream.read().decode())
        except FileNotFoundError:
            return None

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        with self._filesystem.open_output_stream(f"{self._root}/{name}", compression=None) as stream:
            stream.write(text.encode())

    def _last_checkpoint(self) -> int:
        try:
            return int(json.loads(self.text("_last_checkpoint") or "{}").get("version", 0))
        except ValueError:  # torn: `lockstep ledger verify` names it
            return 0

    def _has(self, version: int) -> bool:
        found = self._filesystem.get_file_info(f"{self._root}/{version:020d}.json")
        return bool(found.type == fs.FileType.File)


def _record(text: str | None) -> Mapping[str, Any]:
    try:
        record = json.loads(text or "{}")
    except json.JSONDecodeError:
        return {}
    return record if isinstance(record, dict) else {}
