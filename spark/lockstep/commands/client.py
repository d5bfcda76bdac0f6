"""Send a command, and wait for its outcome."""

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from confluent_kafka import KafkaError, KafkaException, Producer

from lockstep.commands.aggregate import Aggregate, Command
from lockstep.commands.errors import CommandsFailed, NoOutcome
from lockstep.commands.records import Outcome, partition_of
from lockstep.commands.topics import end_of, reader, record_of
from lockstep.kafka_clients import confluent_config

if TYPE_CHECKING:
    from lockstep.settings import Settings

_TIMEOUT_SECONDS = 30.0


def send(settings: "Settings", aggregate: Aggregate[Any, Any, Any], command: Command, seconds: float = 30.0) -> Outcome:
    """Send a command and wait for its outcome. Sent again, the same command has the same outcome.

    What is read from the log of events after this has its events. A view has them when it has read up to ``outcome.after``.

    Raises:
        NoOutcome: it is not there after ``seconds``. The command may be decided later: send the same one again to know.
        CommandsFailed: Kafka did not take the command.
    """
    number, topic = partition_of(command.key, aggregate.partitions), aggregate.topic("outcomes")
    with closing(reader(settings, topic, number, end_of(settings, topic, number))) as outcomes:
        _produce(settings, aggregate.topic("commands"), number, command)
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            message = outcomes.poll(left)
            if message is not None and message.error() is None and message.key() == command.command_id.encode():
                return Outcome.model_validate_json(record_of(message).value)
    raise NoOutcome(
        f"The command {command.command_id} was sent, and has no outcome after {seconds:g} s. Does `lockstep commands run "
        f"{aggregate.name}` run? Send the same command again, with this id: it has one effect."
    )


def _produce(settings: "Settings", topic: str, number: int, command: Command) -> None:
    errors: list[KafkaError] = []
    # An idempotent producer takes half a second to begin. A command that arrives twice has one effect anyway.
    own = {
        "acks": "all",
        "message.timeout.ms": int(_TIMEOUT_SECONDS * 1000),
        "log_level": 0,
    }
    producer = Producer(confluent_config(settings) | own)
    producer.produce(
        topic,
        command.model_dump_json().encode(),
        command.key.encode(),
        number,
        on_delivery=lambda error, _: errors.append(error) if error else None,
    )
    if producer.flush(_TIMEOUT_SECONDS) or errors:
        why = KafkaException(errors[0]) if errors else "no answer"
        raise CommandsFailed(f"{topic} did not take the command {command.command_id} ({why}): send the same one again.")
