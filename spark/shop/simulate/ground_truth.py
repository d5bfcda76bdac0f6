"""What the broker acknowledged, kept outside the platform for the oracle: ``<home>/ground_truth/<topic>.jsonl``.

One line per record, appended when its slice was acknowledged. Three things can set it apart from the log, and each is
mended from the log: a killed simulator leaves a torn last line, and a tail that only the broker knows; and a broker that
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
    """The file knows records that the topic does not have."""


class GroundTruth:
    """The files of some topics, in step with the log.

    Args:
        topics: those that are written; what the broker has beyond their files is added at once.

    Raises:
        TruthMismatch: a file is ahead of its topic, so they do not belong together.
    """

    def __init__(self, settings: Settings, topics: Iterable[str]) -> None:
        self._settings = settings
        self._next: dict[tuple[str, int], int] = {}
        self.recovered = 0
        for topic in topics:
            self._recover(topic)

    def add(self, acknowledged: Iterable[Acknowledged]) -> list[Acknowledged]:
        """Append what was acknowledged, and what the log has between it and what was known.

        Returns:
            all that was appended.
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
        for partition, (first, end) in _bounds(self._settings, topic).items():
            start = max(known.get(partition, -1) + 1, first)
            if start > end:
                raise TruthMismatch(
                    f"{path} knows offset {start - 1} of partition {partition}, but the topic {topic} ends at {end}; it "
                    "belongs to another cluster: `lockstep reset` starts anew"
                )
            self._next[topic, partition] = end
            if start < end:
                behind[partition] = (start, end)
        found = list(_log(self._settings, topic, behind))
        append(self._settings, found)
        self.recovered += len(found)


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


def _bounds(settings: Settings, topic: str) -> dict[int, tuple[int, int]]:
    """Per partition the first offset of the log, and the one after the last."""
    with closing(consumer(settings)) as client:
        places = [kafka.TopicPartition(topic, number) for number in client.partitions_for_topic(topic) or ()]
        first, ends = client.beginning_offsets(places), client.end_offsets(places)
    return {place.partition: (first[place], ends[place]) for place in places}


def _log(settings: Settings, topic: str, ranges: dict[int, tuple[int, int]]) -> Iterator[Acknowledged]:
    """The records that the log has in these ranges ``[start, end)`` of offsets, by partition."""
    if not ranges:
        return
    with closing(consumer(settings)) as client:
        ends = {kafka.TopicPartition(topic, partition): end for partition, (_, end) in ranges.items()}
        client.assign(list(ends))
        for place in ends:
            client.seek(place, ranges[place.partition][0])
        while any(client.position(place) < end for place, end in ends.items()):
            for place, records in client.poll(timeout_ms=500).items():
                yield from (_from_log(record) for record in records if record.offset < ends[place])


def _from_log(record: kafka.consumer.fetcher.ConsumerRecord) -> Acknowledged:
    heartbeat = HEARTBEAT_HEADER in record.headers
    return Acknowledged(
        record.topic, record.partition, record.offset, record.key, record.value, record.timestamp, heartbeat
    )


def append(settings: Settings, records: Iterable[Acknowledged]) -> None:
    """Add records to their topics' files, as they are."""
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
