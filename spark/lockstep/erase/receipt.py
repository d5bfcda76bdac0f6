"""The receipt of an erasure: each place that was looked at, and what was found there before and after."""

import json
from collections import Counter
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lockstep import atomic_files

if TYPE_CHECKING:
    from pathlib import Path

    from lockstep.control.erased import Erasure
    from lockstep.erase.needles import Needles
    from lockstep.erase.scan import Scan
    from lockstep.erase.scope import Scope
    from lockstep.settings import Settings

# The table of keys, a place of its own beside the other tables of the control database.
KEYS = "keys of persons"
# How each place is read.
_HOW = {
    "lake": "each file, unpacked: Parquet by its columns, Delta's logs and checkpoints, state by its blocks",
    "home": "each file of logs, pages and working directories, unpacked",
    KEYS: "each row of the table of keys, which are found by the token of their person",
    "control database": "each row of each table",
    "Airflow's database": "each row of each table",
    "Kafka": "each record of each topic, also of aborted transactions",
}
# What nobody but its owner can look at, or erase.
NOT_LOOKED_AT = (
    "the source database, which is its owner's",
    "PostgreSQL's log of writes, until it is recycled",
    "disks of executors on other machines than the lake",
    "backups, and what receivers outside the platform have got",
)


def receipt(erasure: "Erasure", found: "Scope", needles: "Needles", before: "Scan", after: "Scan") -> dict[str, Any]:
    """What is kept of an erasure. No value of the person is in it."""
    then, now = (Counter(hit.place for hit in scan.hits if not hit.is_transient) for scan in (before, after))
    return {
        "erasure": erasure.number,
        "subject": erasure.subject,
        "by": erasure.by,
        "approved_by": erasure.approved_by,
        "reason": erasure.reason,
        "asked_at": erasure.asked_at.isoformat(),
        "records": {name: of.records for name, of in sorted(found.found.items())},
        "views": sorted(found.touched),
        "looked_for": sorted(needles.values),
        "too_common_to_look_for": needles.too_common,
        "places": {
            place: {"how": how, "looked_at": after.looked_at.get(place, 0), "before": then[place], "after": now[place]}
            for place, how in _HOW.items()
        },
        "left": [
            {"place": hit.place, "where": hit.where, "what": hit.what} for hit in after.hits if not hit.is_transient
        ],
        "until_spark_starts_again": sorted({hit.where for hit in after.hits if hit.is_transient}),
        "kafka_still_has": {partition: [*ends] for partition, ends in sorted(after.kept.items())},
        "kafka_keeps_until": {partition: at.isoformat() for partition, at in sorted(after.until.items())},
        "until_compaction": {partition: [*ends] for partition, ends in sorted(after.superseded.items())},
        "not_looked_at": [*NOT_LOOKED_AT],
    }


def looked_again(first: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, Any]:
    """The receipt of an erasure whose places were all looked at once more: what was erased and found the first time stays."""
    # A receipt of an earlier release may lack a place.
    places = {place: of | {"before": first["places"].get(place, of)["before"]} for place, of in now["places"].items()}
    return {**now, "records": first["records"], "views": first["views"], "places": places}


def is_empty(kept: Mapping[str, Any]) -> bool:
    """Whether the receipt says that no place has anything of the person any more."""
    return not kept["left"]


def directory(settings: "Settings") -> "Path":
    """Where receipts are. The scanner does not look there."""
    return settings.home / "erasures"


def every(settings: "Settings") -> list[dict[str, Any]]:
    """All receipts, the oldest first."""
    found = [json.loads(file.read_text()) for file in directory(settings).glob("*.json")]
    return sorted(found, key=lambda kept: int(kept["erasure"]))


def erased_at(settings: "Settings") -> dict[str, datetime]:
    """By the tokens of the subjects, when the newest erasure that has a receipt was asked for (UTC)."""
    found: dict[str, datetime] = {}
    for kept in every(settings):
        if kept["subject"]:
            at = datetime.fromisoformat(kept["asked_at"])
            found[kept["subject"]] = max(at, found.get(kept["subject"], at))
    return found


def path(settings: "Settings", number: int) -> "Path":
    """Where the receipt is."""
    return directory(settings) / f"{number}.json"


def save(settings: "Settings", kept: Mapping[str, Any]) -> "Path":
    """Write the receipt to its file, which only its owner may read."""
    file = path(settings, kept["erasure"])
    file.parent.mkdir(mode=0o700, exist_ok=True)
    atomic_files.replace(file, json.dumps(kept, indent=2).encode(), 0o600)
    return file
