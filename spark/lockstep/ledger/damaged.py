"""Data files whose content cannot be read any more: find them, and take them out of their table.

What they held is then missing like any lost row, and a replay brings it back.
"""

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
from deltalake import CommitProperties, DeltaTable
from pyarrow import fs

from lockstep import lake
from lockstep.control.leases import lease
from lockstep.definition.tables import written_under
from lockstep.ledger.log_files import LogFiles

if TYPE_CHECKING:
    from lockstep.settings import Settings

WRITER = "damage"


@dataclass(frozen=True)
class Damaged:
    """A data file that cannot be read.

    Args:
        path: below the table.
        rows: how many the log says that it has.
        problem: why it cannot be read.
    """

    path: str
    rows: int
    problem: str


def damaged_files(settings: "Settings", table: str) -> list[Damaged]:
    """The files of the table's newest version that are missing, or whose content is not what was written.

    Reads all of them: Spark writes a checksum for each page. delta-rs, which writes small commits, and compacts small partitions,
    writes none, so that a changed byte of its files is only found where it cannot be decoded.
    """
    location = lake.path(settings, table)
    filesystem, root = fs.FileSystem.from_uri(location)
    actions = pa.table(DeltaTable(location).get_add_actions()).select(["path", "num_records"]).to_pylist()
    found = ((one, _problem(filesystem, f"{root}/{unquote(one['path'])}")) for one in actions)
    return [Damaged(unquote(one["path"]), one["num_records"] or 0, problem) for one, problem in found if problem]


def take_out(settings: "Settings", table: str, damaged: list[Damaged], by: str, reason: str) -> list[str]:
    """Take the files out of the table, in one commit, and move those that are there to its ``_torn``.

    Returns:
        Where they are now.
    """
    record = {"writer": WRITER, "by": by, "reason": reason, "rows": sum(one.rows for one in damaged)}
    with lease(settings, written_under(table), by):
        files = LogFiles(settings, table)
        places = [files.put_data_aside(one.path) for one in damaged]
        # It removes from the log what is not there.
        DeltaTable(lake.path(settings, table)).repair(
            commit_properties=CommitProperties(custom_metadata={"userMetadata": json.dumps(record, sort_keys=True)})
        )
    return [place for place in places if place]


def _problem(filesystem: Any, path: str) -> str | None:
    try:
        with filesystem.open_input_file(path) as source:
            file = pq.ParquetFile(source, page_checksum_verification=True)
            for group in range(file.num_row_groups):
                file.read_row_group(group)
    except FileNotFoundError:
        return "it is missing"
    except (pa.ArrowException, OSError) as error:
        return str(error).partition("\n")[0]
    return None
