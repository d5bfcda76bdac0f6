"""The checksum file of a version, which Spark writes with each commit and delta-rs does not.

With it, Spark knows a version's columns and properties. Without it, Spark runs a job over the log whenever it opens a version
that is new to it.

Source: the Delta transaction protocol, "Version Checksum File".
"""

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from lockstep.lake.log import Log

if TYPE_CHECKING:
    from lockstep.settings import Settings

# Commits without a checksum that are read at most, such as that of a writer that died before it wrote one.
_COMMITS = 20


def write(settings: "Settings", table: str, version: int) -> None:
    """Write the checksum of a version from the newest one before it and the commits since.

    The file is optional: none is written where these commits do not say enough, or are too many.

    Args:
        table: ``layer.name``.
    """
    log = Log(settings, table)
    commits: list[list[dict[str, Any]]] = []
    for before in range(version - 1, version - 1 - _COMMITS, -1):
        text = log.read(before + 1)
        if text is None:
            return
        commits.insert(0, [json.loads(line) for line in text.splitlines()])
        if checksum := _checksum(log, before):
            if newest := following(checksum, commits):
                log.write(_name(version), json.dumps(newest) + "\n")
            return


def following(checksum: Mapping[str, Any], commits: Iterable[Iterable[Mapping[str, Any]]]) -> dict[str, Any] | None:
    """The checksum after some commits, in their order, each of which is a list of actions. Pure.

    None: it cannot be said, because a commit does not say how large a file was that it removes.
    """
    size, files, info = checksum["tableSizeBytes"], checksum["numFiles"], dict[str, Any]()
    newest = {"metadata": checksum["metadata"], "protocol": checksum["protocol"]}
    for actions in commits:
        for action in actions:
            match action:
                case {"add": {"size": added}}:
                    size, files = size + added, files + 1
                case {"remove": {"size": removed}}:
                    size, files = size - removed, files - 1
                case {"remove": _}:
                    return None
                case {"metaData": metadata}:
                    newest["metadata"] = metadata
                case {"protocol": protocol}:
                    newest["protocol"] = protocol
                case {"commitInfo": info}:
                    pass
    # The other fields are optional, and Spark computes them where it needs them.
    optional = {"txnId": info.get("txnId"), "inCommitTimestampOpt": info.get("inCommitTimestamp")}
    counts = {"tableSizeBytes": size, "numFiles": files, "numMetadata": 1, "numProtocol": 1}
    return {**{name: value for name, value in optional.items() if value is not None}, **counts, **newest}


def _checksum(log: Log, version: int) -> dict[str, Any] | None:
    """None: the version has no checksum, or one that was cut short."""
    try:
        checksum: dict[str, Any] | None = json.loads(log.text(_name(version)) or "null")
    except ValueError:
        return None
    return checksum if checksum and checksum.get("metadata") and checksum.get("protocol") else None


def _name(version: int) -> str:
    return f"{version:020d}.crc"
