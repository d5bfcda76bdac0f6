"""A new generation of a source: its captured tables as they are now, newer than all changes before.

It begins with a TRUNCATE of every captured table, which a snapshot of the tables' rows follows: all that is older ends, unless
the snapshot has it.
"""

import json
import time
from collections.abc import Mapping
from contextlib import closing

from lockstep import ledger
from lockstep.contracts.captured import captured, slot_of
from lockstep.definition.tables import Tables
from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.kafka_clients import producer
from lockstep.refine.parse import GENERATION, US
from lockstep.settings import Settings
from lockstep.stack import connect_api
from lockstep.stack.connect_api import PATIENCE
from lockstep.stack.connector_config import connector_config, generation_of
from lockstep.stack.source import drop_slot, source_now


def begin_generation(settings: Settings, database: str) -> int:
    """Take the captured tables of a source database as they are now, in a new generation; its number.

    Raises:
        StackError: Kafka Connect or the source refused a part. Nothing is lost: it can be called again.
    """
    with connect_api.answering():
        return _begin(settings, database)


def _begin(settings: Settings, database: str) -> int:
    source, _ = source_now(settings, database)
    generation = current_generation(settings, database, connect_api.get(settings, f"/{database}/config")) + 1
    connect_api.stop(settings, database)
    connect_api.call(settings, database, "PUT", "/config", connector_config(settings, database, generation, source))
    forget_position(settings, database)
    _truncate_all(settings, database, generation)
    connect_api.call(settings, database, "PUT", "/resume")
    return generation


def forget_position(settings: Settings, database: str) -> None:
    """Have the connector, which must be stopped, forget where it is in the source's log: next time it begins with a snapshot.

    Raises:
        StackError: the replication slot is still in use.
    """
    connect_api.call(settings, database, "DELETE", "/offsets")
    name = slot_of(settings, database)
    connect_api.await_(lambda: drop_slot(settings, database, name), f"the replication slot {name} is still in use")


def truncate_record(at: int) -> bytes:
    """A TRUNCATE as Debezium tells it, before all other changes of its generation. Pure.

    Args:
        at: its time (milliseconds, UTC).
    """
    source = {"connector": US, "lsn": 0, "sequence": '["0","0"]', "snapshot": "false", "ts_ms": at}
    return json.dumps({"before": None, "after": None, "op": "t", "source": source, "ts_ms": at}).encode()


def current_generation(settings: Settings, database: str, config: Mapping[str, str]) -> int:
    """The current generation: of the connector, or of the lake where somebody has removed the connector."""
    logs = (Tables.of(contract).log for contract in captured(settings, database).values())
    entries = filter(None, (ledger.latest(settings, log) for log in logs))
    return max([generation_of(config), *(commit[0] for entry in entries for commit in entry.commits.values())])


def _truncate_all(settings: Settings, database: str, generation: int) -> None:
    topics = offsets_of_existing_topics(settings, [c.topic for c in captured(settings, database).values()])
    headers, now = [(GENERATION, str(generation).encode())], time.time_ns() // 1_000_000
    with closing(producer(settings)) as kafka:
        answers = [kafka.send(topic, truncate_record(now), headers=headers) for topic in topics]
        for answer in answers:
            answer.get(PATIENCE)
