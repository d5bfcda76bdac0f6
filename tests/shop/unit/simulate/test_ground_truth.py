"""The ground truth keeps every byte that was acknowledged."""

from pathlib import Path

import pandas as pd

from lockstep.settings import Settings
from shop.simulate import ground_truth
from shop.simulate.producer import Acknowledged

ROWS = [
    Acknowledged("clicks", 1, 0, b"12345", b'{"event_id":"\xc3\xa9"}', 1_790_000_000_123, False),
    Acknowledged("logins", 0, 4, b"1", b"", 1_790_000_000_000, False),
    Acknowledged("clicks", 0, 7, b"2", b"\xff\xfe\n", 1_790_000_000_456, False),
    Acknowledged("clicks", 0, 8, None, None, 1_790_000_060_000, True),
]


def test_what_was_acknowledged_is_read_back_by_partition_and_offset(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    ground_truth.append(settings, ROWS[:2])
    ground_truth.append(settings, ROWS[2:])
    clicks = ground_truth.read(settings, "clicks")
    assert clicks[["partition", "offset"]].to_numpy().tolist() == [[0, 7], [0, 8], [1, 0]]
    assert clicks["value"].tolist() == [b"\xff\xfe\n", None, b'{"event_id":"\xc3\xa9"}']
    assert clicks["key"].tolist() == ["2", None, "12345"]
    assert clicks["is_heartbeat"].tolist() == [False, True, False]
    assert clicks["arrival"].iloc[0] == pd.Timestamp(1_790_000_000_456, unit="ms", tz="UTC")
    assert ground_truth.read(settings, "logins")["value"].tolist() == [b""]


def test_a_topic_that_was_never_sent_to_is_empty(tmp_path: Path) -> None:
    assert ground_truth.read(Settings(home=tmp_path), "clicks").empty
