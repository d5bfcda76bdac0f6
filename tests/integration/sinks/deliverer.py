"""A query that delivers: micro-batches in order, each acknowledged in a file once it is delivered, as Spark writes ``commits/N``.

Run as ``python deliverer.py NAME TOPIC DELIVERY ACKNOWLEDGED BATCHES [without-reading-back]``, and killed by the tests.
"""

import sys
from pathlib import Path

from lockstep.definition.alerting import Delivery
from lockstep.sinks.sink import TopicSink
from lockstep.sinks.topic import ExactlyOnce, ToTopic

ROWS = 5


def rows(batch_id: int) -> list[dict[str, object]]:
    """The same on every run."""
    return [{"alert_id": f"{batch_id}-{n}", "user_id": f"u{n}"} for n in range(ROWS)]


def main(name: str, topic: str, delivery: str, acknowledged: Path, batches: int) -> None:
    sink = ToTopic(TopicSink(name, topic, key="user_id", delivery=Delivery(delivery)))
    done = int(acknowledged.read_text()) if acknowledged.exists() else -1
    for batch_id in range(done + 1, batches):
        sink(rows(batch_id), batch_id)
        written = acknowledged.with_suffix(".new")
        written.write_text(str(batch_id))
        written.replace(acknowledged)


if __name__ == "__main__":
    if sys.argv[6:] == ["without-reading-back"]:
        ExactlyOnce.last_committed = lambda _: -1  # type: ignore[method-assign]
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]), int(sys.argv[5]))
