"""A query that delivers micro-batches in order. It records each delivered batch in a file, as Spark writes ``commits/N``.

Run as ``python deliverer.py NAME TOPIC DELIVERY ACKNOWLEDGED BATCHES [without-reading-back]``, which the tests kill.
"""

import sys
from pathlib import Path

from lockstep.definition.alerting import Delivery
from lockstep.sinks.kafka_senders import ExactlyOnce
from lockstep.sinks.kafka_sink import KafkaSink, KafkaSinkConfig

ROWS = 5


def rows(batch_id: int) -> list[dict[str, object]]:
    """The rows of a batch: the same on every run."""
    return [{"alert_id": f"{batch_id}-{n}", "user_id": f"u{n}"} for n in range(ROWS)]


def main(name: str, topic: str, delivery: str, acknowledged: Path, batches: int) -> None:
    sink = KafkaSink(KafkaSinkConfig(name, topic, key="user_id", delivery=Delivery(delivery)))
    last = int(acknowledged.read_text()) if acknowledged.exists() else -1
    for batch_id in range(last + 1, batches):
        sink(rows(batch_id), batch_id)
        new_file = acknowledged.with_suffix(".new")
        new_file.write_text(str(batch_id))
        new_file.replace(acknowledged)


if __name__ == "__main__":
    if sys.argv[6:] == ["without-reading-back"]:
        ExactlyOnce.last_record = lambda _: {"batch_id": -1}  # type: ignore[method-assign]
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), int(sys.argv[5]))
