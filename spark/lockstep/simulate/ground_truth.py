"""What the broker acknowledged, kept outside the platform for the oracle: ``<home>/ground_truth/<topic>.jsonl``.

One line per record, appended when its slice was acknowledged. A killed simulator leaves at most a torn last line and a
tail that only the broker knows; ``recover`` mends both.
"""

import base64
import json
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path

import kafka
import pandas as pd

from lockstep.errors import LockstepError
from lockstep.kafka import consumer
from lockstep.settings import Settings
from lockstep.simulate.producer import HEARTBEAT_HEADER, Acknowledged

_COLUMNS = ["topic", "partition", "offset", "key", "value", "arrival", "is_heartbeat"]


class TruthMismatch(LockstepError):
    """The file knows records that the topic does not have."""


def append(settings: Settings, records: Iterable[Acknowledged]) -> None:
    """Add acknowledged records to their topics' files."""
    ordered = sorted(records, key=lambda record: record.topic)
    for topic, rows in groupby(ordered, key=lambda record: record.topic):
        path = _path(settings, topic)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write("".join(_line(row) for row in rows))


def read(settings: Settings, topic: str) -> pd.DataFrame:
    """All acknowledged records of a topic, in the order of partition and offset.

    Columns: topic, partition, offset, key (text or None), value (bytes, None for a heartbeat), arrival (timestamp,
    UTC) and is_heartbeat. Empty when nothing was sent.
    """
    path = _path(settings, topic)
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    frame = pd.DataFrame(
        [json.loads(line) for line in text.splitlines()], columns=[c for c in _COLUMNS if c != "topic"]
    )
    frame.insert(0, "topic", topic)
    frame["value"] = [None if value is None else base64.b64decode(value) for value in frame["value"]]
    frame["arrival"] = pd.to_datetime(frame["arrival"], unit="ms", utc=True)
    return frame.sort_values(["partition", "offset"], ignore_index=True)


def recover(settings: Settings, topics: Iterable[str]) -> int:
    """Cut torn last lines, and add what the broker has past the last known offsets.

    Returns:
        how many records were added.

    Raises:
        TruthMismatch: a file is ahead of its topic, so they do not belong together.
    """
    client = consumer(settings)
    try:
        return sum(_recover(settings, client, topic) for topic in topics)
    finally:
        client.close()


def _recover(settings: Settings, client: kafka.KafkaConsumer, topic: str) -> int:
    _cut_torn_line(_path(settings, topic))
    known = read(settings, topic).groupby("partition")["offset"].max().to_dict()
    partitions = [kafka.TopicPartition(topic, number) for number in client.partitions_for_topic(topic) or ()]
    first, ends = client.beginning_offsets(partitions), client.end_offsets(partitions)
    wanted = {place: max(known.get(place.partition, -1) + 1, first[place]) for place in partitions}
    for place, start in wanted.items():
        if start > ends[place]:
            raise TruthMismatch(
                f"{_path(settings, topic)} knows offset {start - 1} of partition {place.partition}, but the topic "
                f"{topic} ends at {ends[place]}; it belongs to another cluster: `lockstep reset` starts anew"
            )
    behind = [place for place in partitions if wanted[place] < ends[place]]
    client.assign(behind)
    for place in behind:
        client.seek(place, wanted[place])
    added = 0
    while any(client.position(place) < ends[place] for place in behind):
        batches = client.poll(timeout_ms=500)
        records = [_from_log(record) for batch in batches.values() for record in batch]
        append(settings, records)
        added += len(records)
    return added


def _from_log(record: kafka.consumer.fetcher.ConsumerRecord) -> Acknowledged:
    heartbeat = HEARTBEAT_HEADER in record.headers
    return Acknowledged(
        record.topic, record.partition, record.offset, record.key, record.value, record.timestamp, heartbeat
    )


def _cut_torn_line(path: Path) -> None:
    if path.exists():
        text = path.read_bytes()
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            with path.open("r+b") as file:
                file.truncate(whole)


def _line(row: Acknowledged) -> str:
    value = None if row.value is None else base64.b64encode(row.value).decode()
    fields = {
        "partition": row.partition,
        "offset": row.offset,
        "key": None if row.key is None else row.key.decode(),
        "value": value,
        "arrival": row.arrival,
        "is_heartbeat": row.is_heartbeat,
    }
    return json.dumps(fields) + "\n"


def _path(settings: Settings, topic: str) -> Path:
    return settings.home / "ground_truth" / f"{topic}.jsonl"
