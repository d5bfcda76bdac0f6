"""What the log has lost that the ledger needs: by retention, by truncation, or with the whole topic. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from lockstep.errors import DataLoss, TopicRecreated
from lockstep.ledger.ranges import Range, TopicOffsets


def position(previous: Iterable[Range], log: TopicOffsets) -> dict[int, Range]:
    """The ledger's newest range of each partition. One that is new to it was added to the topic, and began with offset 0.

    It is empty for a new ledger, which takes the log as it finds it.
    """
    before = {r.partition: r for r in previous}
    new = log.partitions.keys() - before.keys() if before else ()
    return before | {p: Range(log.topic, log.topic_id, p, 0, 0) for p in new}


def check(before: Mapping[int, Range], log: TopicOffsets) -> None:
    """Check that the log goes on where the ledger ends.

    Raises:
        TopicRecreated: the topic's id differs from the ledger's.
        DataLoss: retention, truncation or a removed partition took offsets that the ledger needs.
    """
    ensure_same_log(before, log)
    for p, r in before.items():
        first, _ = log.partitions[p]
        if first > r.end:
            raise DataLoss(
                f"{log.topic}-{p}: offsets [{r.end}, {first}) are gone from the log before they were read. "
                "Raise the topic's retention. `lockstep ledger accept-gap` accepts the gap, which is the only way past it."
            )


def ensure_same_log(before: Mapping[int, Range], log: TopicOffsets) -> None:
    """Check that the log is the one that the ledger has read, and has its end; what retention took does not matter.

    Raises:
        TopicRecreated, DataLoss: it is not.
    """
    _check_identity(before, log)
    for p, r in before.items():
        if log.same_to(p) < r.end:
            raise DataLoss(_truncated(r, log))


def gaps(previous: Iterable[Range], log: TopicOffsets) -> list[Range]:
    """The ranges that are gone from the log before they were read; an empty range for each partition that misses nothing.

    Raises:
        TopicRecreated, DataLoss: what is missing is not the beginning of the log, so it is no gap.
    """
    before = position(previous, log)
    ensure_same_log(before, log)
    return [replace(r, start=r.end, end=max(r.end, log.partitions[p][0])) for p, r in sorted(before.items())]


def truncations(previous: Iterable[Range], log: TopicOffsets) -> list[Range]:
    """What the ledger has and the log has lost: of each partition that was truncated, from there to the ledger's end.

    Raises:
        TopicRecreated, DataLoss: it is another log, not a truncated one.
    """
    before = position(previous, log)
    _check_identity(before, log)
    return [replace(r, start=log.same_to(p)) for p, r in sorted(before.items()) if log.same_to(p) < r.end]


def recreated(previous: Iterable[Range], log: TopicOffsets) -> list[Range]:
    """What the ledger has of a topic that was deleted and created again: all of each partition. Empty for the same topic.

    Raises:
        DataLoss: the new topic lacks one of the partitions.
    """
    before = {r.partition: r for r in previous}
    if all(r.topic_id == log.topic_id for r in before.values()):
        return []
    if missing := sorted(before.keys() - log.partitions.keys()):
        raise DataLoss(
            f"{log.topic}: the ledger has {len(before)} partitions, and the topic that was created again lacks partition "
            f"{', '.join(map(str, missing))}: add partitions to it."
        )
    return [replace(r, start=0) for _, r in sorted(before.items())]


def _check_identity(before: Mapping[int, Range], log: TopicOffsets) -> None:
    for p, r in before.items():
        where = f"{log.topic}-{p}"
        if r.topic_id != log.topic_id:
            raise TopicRecreated(
                f"{where}: the ledger ends at offset {r.end} of topic id {r.topic_id}, but the broker's topic has id "
                f"{log.topic_id}: it was deleted and created again, and its offsets begin at 0 again. Nothing was read. If "
                "LOCKSTEP_KAFKA names the right cluster, `lockstep ledger accept-recreation` goes on with it. If it is another "
                "stream, give it a contract of its own."
            )
        if p not in log.partitions:
            raise DataLoss(f"{where}: the ledger ends at offset {r.end}, but the broker has no such partition.")
        if log.same_to(p) < 0:
            raise DataLoss(
                f"{where}: the broker does not know the leader epoch in which the ledger took the offsets before {r.end}: its "
                "metadata is older than the ledger. Restore the broker, or create the topic again."
            )


def _truncated(r: Range, log: TopicOffsets) -> str:
    cut, end = log.same_to(r.partition), log.end(r.partition)
    now = f"the log has other records at [{cut}, {end})" if end > cut else f"the log ends at {end}"
    return (
        f"{r.topic}-{r.partition}: the broker lost offsets [{cut}, {r.end}), which bronze has; {now}. Nothing was read. If a "
        "replica or a backup still has them, restore it before anything else is produced. Otherwise "
        "`lockstep ledger accept-truncation` goes on."
    )
