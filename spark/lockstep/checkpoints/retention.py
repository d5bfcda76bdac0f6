"""Records that retention has taken before a live query has read them."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from lockstep.errors import DataLoss
from lockstep.live.checkpoint import Checkpoint

if TYPE_CHECKING:
    from lockstep.ledger.ranges import TopicOffsets
    from lockstep.live.sink import Member
    from lockstep.settings import Settings


def lost_records(
    settings: "Settings", members: "Sequence[Member]", logs: "Mapping[str, TopicOffsets]"
) -> DataLoss | None:
    """What a job cannot read any more; None if its topics go on where its checkpoint ends.

    Args:
        logs: what its topics have now.
    """
    for topic, ends in Checkpoint(members[0][0].location(settings)).position().items():
        for p, end in sorted(ends.items()):
            first = logs[topic].partitions.get(p, (0, 0))[0]
            if end < first:
                views = ", ".join(view.name for _, view in members)
                to = "gold" if members[0][1].has_machines else "earliest"
                command = "share" if len(members) > 1 else f"reset {members[0][1].name} --to {to}"
                return DataLoss(
                    f"{topic}-{p}: offsets [{end}, {first}) are gone from the log before {views} read them live. Gold has them, "
                    f"if bronze has. Raise the topic's retention, and go on from there: `lockstep checkpoints {command}`."
                )
    return None
