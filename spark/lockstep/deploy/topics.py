"""Topics that exist, but are not as their contract says. They are named, and never changed: that would touch what is in them."""

from collections.abc import Iterable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING

from lockstep.kafka_clients import admin, configs, configured

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.settings import Settings


def differences(settings: "Settings", contracts: Iterable["Contract"]) -> dict[str, list[str]]:
    """By topic that exists: how it differs from its contract; without topics that are as they should be.

    Raises:
        KafkaUnavailable: no broker answers.
    """
    by_topic = {c.topic: c for c in contracts}
    with closing(admin(settings)) as client:
        there = {t["name"]: len(t["partitions"]) for t in client.describe_topics([*by_topic]) if t["partitions"]}
        found = configured(client, {topic: configs(by_topic[topic]) for topic in there})
    return {
        topic: reasons
        for topic, partitions in there.items()
        if (reasons := [*_differences(by_topic[topic], partitions, found.get(topic, {}))])
    }


def _differences(contract: "Contract", partitions: int, values: Mapping[str, str | None]) -> Iterable[str]:
    if partitions < contract.partitions:
        yield (
            f"it has {partitions} partitions, and the contract says {contract.partitions}: add them with "
            f"`lockstep kafka topics --alter --topic {contract.topic} --partitions {contract.partitions}`, which moves keys"
        )
    if partitions > contract.partitions:
        yield f"it has {partitions} partitions, which cannot be taken away: say partitions={partitions} in the contract"
    for name, wanted in configs(contract).items():
        there = values.get(name)
        if there is not None and there != wanted:
            yield (
                f"{name} is {there}, and should be {wanted}: `lockstep kafka configs --alter --entity-type topics "
                f"--entity-name {contract.topic} --add-config {name}={wanted}`"
            )
