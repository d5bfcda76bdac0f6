"""Which streams have new records, as their ledgers and the brokers say."""

import pytest
from tests.support.commits import ledger_record, ranges, write_commit
from tests.support.torn import tear

from lockstep.contracts import CONTRACTS
from lockstep.ingest import bronze
from lockstep.settings import Settings

STREAMS = [CONTRACTS[name] for name in ("page_views", "searches", "sensors")]


def test_a_torn_log_counts_as_behind_and_the_others_are_looked_up(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def offsets(_: Settings, topics: list[str], __: object) -> dict[str, str]:
        asked.extend(topics)
        return {topic: topic for topic in topics}

    monkeypatch.setattr(bronze, "offsets_of_existing_topics", offsets)
    monkeypatch.setattr(bronze, "forbidden_topics", lambda *_: set())
    monkeypatch.setattr(bronze, "_has_changed", lambda log, _: log == STREAMS[2].topic)
    for contract in STREAMS[:2]:
        write_commit(settings, f"bronze.{contract.name}", 1, ledger_record(ranges({0: (0, 10)})), rows=10)
    tear(settings, f"bronze.{STREAMS[0].name}")
    assert bronze.behind(settings, STREAMS) == [STREAMS[0], STREAMS[2]]
    assert asked == [contract.topic for contract in STREAMS[1:]]
