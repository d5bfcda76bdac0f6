"""Whether topics are still the ones that bronze has read: neither created again nor truncated."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lockstep import ledger
from lockstep.definition.tables import bronze_of
from lockstep.errors import DataLoss, LedgerBroken, LockstepError, TopicRecreated
from lockstep.ingest.offsets import offsets_of_existing_topics
from lockstep.ledger.losses import ensure_same_log, position
from lockstep.ledger.ranges import TopicOffsets

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.settings import Settings


def changed_logs(settings: "Settings", contracts: Iterable["Contract"]) -> dict[str, LockstepError]:
    """By topic, what has become of those whose log is not the one any more that bronze has read. Asks the broker once.

    Topics that do not exist are left out, and so are those of which bronze has nothing, or a log that cannot be read.
    """
    return offsets_and_changed(settings, contracts)[1]


def offsets_and_changed(
    settings: "Settings", contracts: Iterable["Contract"]
) -> tuple[Mapping[str, TopicOffsets], dict[str, LockstepError]]:
    """The same, and the offsets that the topics have now."""
    newest = {c.topic: entry for c in contracts if (entry := _newest(settings, c))}
    offsets = offsets_of_existing_topics(settings, [*newest], {topic: entry.epochs for topic, entry in newest.items()})
    found: dict[str, LockstepError] = {}
    for topic, log in offsets.items():
        try:
            ensure_same_log(position(newest[topic].ranges, log), log)
        except (TopicRecreated, DataLoss) as error:
            found[topic] = error
    return offsets, found


def _newest(settings: "Settings", contract: "Contract") -> ledger.Entry | None:
    try:
        return ledger.latest(settings, bronze_of(contract))
    except LedgerBroken:
        # Ingest says so. It tells nothing of the topic.
        return None
