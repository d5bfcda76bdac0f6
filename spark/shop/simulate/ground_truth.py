"""The ground truth: what the broker acknowledged, kept outside the platform in ``<home>/ground_truth/<topic>.jsonl``.

It has one line per record, appended when the record's slice was acknowledged. Three faults can make it differ from the log, and
each is repaired from the log. A killed simulator leaves a torn last line, and records that only the broker knows. A broker that
is killed before it answers may hold a batch twice, of which the client knows one.
"""

import base64
import json
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import kafka
import pandas as pd

from lockstep.errors import LockstepError
from lockstep.kafka_clients import consumer
from lockstep.settings import Settings
from shop.simulate.producer import HEARTBEAT_HEADER, Acknowledged

_COLUMNS = ["topic", "partition", "offset", "key", "value", "arrival", "is_heartbeat"]


class TruthMismatch(LockstepError):
    """The file has records that the topic does not have."""


class GroundTruth:
    """The files of some topics. They always have what the log has.

    Args:
        topics: the topics to write. Records that are in the log but not in the files are added at once.

    Raises:
        TruthMismatch: a file is ahead of its topic, so the two do not belong together.
    """

    def __init__(self, settings: Settings, topics: Iterable[str]) -> None:
        self._settings = settings
        self._next: dict[tuple[str, int], int] = {}
        self.recovered = 0
        for topic in topics:
            self._recover(topic)

    def add(self, acknowledged: Iterable[Acknowledged]) -> list[Acknowledged]:
        """Append the acknowledged records, and the records of the log that lie between them and the end of the file.

        Returns:
            all records that were appended.
        """
        by_partition = defaultdict(list)
        for record in acknowledged:
            by_partition[record.topic, record.partition].append(record)
        added: list[Acknowledged] = []
        for (topic, partition), records in by_partition.items():
            start, end = self._next[topic, partition], max(record.offset for record in records) + 1
            added += records if len(records) == end - start else _log(self._settings, topic, {partition: (start, end)})
            self._next[topic, partition] = end
        append(self._settings, added)
        return added

    def _recover(self, topic: str) -> None:
        path = _path(self._settings, topic)
        _cut_torn_line(path)
        known = read(self._settings, topic).groupby("partition")["offset"].max().to_dict()
        behind = {}
        for partition, (first, end) in _offsets(self._settings, topic).items():
            start = max(known.get(partition, -1) + 1, first)
            if start > end:
                raise TruthMismatch(
                    f"{path} knows offset {start - 1} of partition {partition}, but the topic {topic} ends at {end}: the "
                    "file belongs to another cluster. `lockstep reset` deletes both."
                )
            self._next[topic, partition] = end
            if start < end:
                behind[partition] = (start, end)
        missing = list(_log(self._settings, topic, behind))
        append(self._settings, missing)
        self.recovered += len(missing)


def read(settings: Settings, topic: str) -> pd.DataFrame:
    """All acknowledged records of a topic, in the order of partition and offset.

    Columns: topic, partition, offset, key (text or None), value (bytes, None for a heartbeat), arrival (timestamp,
    UTC) and is_heartbeat. Empty if nothing was sent.
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


def _offsets(settings: Settings, topic: str) -> dict[int, tuple[int, int]]:
    """The first offset of each partition's log, and the offset after its last record."""
    with closing(consumer(settings)) as client:
        partitions = [kafka.TopicPartition(topic, number) for number in client.partitions_for_topic(topic) or ()]
        first, ends = client.beginning_offsets(partitions), client.end_offsets(partitions)
    return {p.partition: (first[p], ends[p]) for p in partitions}


def _log(settings: Settings, topic: str, ranges: dict[int, tuple[int, int]]) -> Iterator[Acknowledged]:
    """The records of the log in these ranges ``[start, end)`` of offsets, by partition."""
    if not ranges:
        return
    with closing(consumer(settings)) as client:
        ends = {kafka.TopicPartition(topic, partition): end for partition, (_, end) in ranges.items()}
        client.assign(list(ends))
        for partition in ends:
            client.seek(partition, ranges[partition.partition][0])
        while any(client.position(partition) < end for partition, end in ends.items()):
            for partition, records in client.poll(timeout_ms=500).items():
                yield from (_from_log(record) for record in records if record.offset < ends[partition])


def _from_log(record: kafka.consumer.fetcher.ConsumerRecord) -> Acknowledged:
    heartbeat = HEARTBEAT_HEADER in record.headers
    return Acknowledged(
        record.topic, record.partition, record.offset, record.key, record.value, record.timestamp, heartbeat
    )


def append(settings: Settings, records: Iterable[Acknowledged]) -> None:
    """Append records to their topics' files."""
    lines = defaultdict(list)
    for record in records:
        lines[record.topic].append(_line(record))
    for topic, written in lines.items():
        path = _path(settings, topic)
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write("".join(written))


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
