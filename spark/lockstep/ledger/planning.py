"""Plan the ranges that are taken next, from what was taken and what is there. Pure."""

from collections.abc import Iterable, Mapping

from lockstep.errors import LedgerBroken
from lockstep.ledger.losses import check, position
from lockstep.ledger.ranges import Range, TopicOffsets


def plan(previous: Iterable[Range], log: TopicOffsets, max_offsets: int) -> list[Range]:
    """Plan the next micro-batch: from where the previous one ended, at most ``max_offsets`` offsets in all.

    A new ledger starts at the first offset of each partition. A partition that is new to a ledger starts at offset 0. The offsets
    are shared among the partitions in proportion to the backlog of each, so that no partition starves and all come to about the
    same event time.

    Raises:
        TopicRecreated: the topic's id differs from the ledger's.
        DataLoss: retention, truncation or a removed partition took offsets that the ledger needs.
    """
    before = position(previous, log)
    check(before, log)
    starts = {p: before[p].end if p in before else first for p, (first, _) in log.partitions.items()}
    backlog = {p: max(last - starts[p], 0) for p, (_, last) in log.partitions.items()}
    share = _shares(backlog, max_offsets)
    return [
        Range(
            topic=log.topic,
            topic_id=log.topic_id,
            partition=p,
            start=starts[p],
            end=starts[p] + share[p],
        )
        for p in sorted(log.partitions)
    ]


def plan_downstream(
    previous: Iterable[Range], source: Iterable[Range], origin: Mapping[int, int], max_offsets: int
) -> list[Range]:
    """Plan what a downstream table takes from its source: from the ends of ``previous`` to the ends of ``source``.

    Args:
        origin: per partition, the first offset of the source's own ledger. There a partition starts that is new to the table.

    Raises:
        LedgerBroken: the source ends before the table: commits of the source are gone.
    """
    source, previous = list(source), list(previous)
    if not source:
        return []
    bounds = {r.partition: (origin.get(r.partition, 0), r.end) for r in source}
    for r in previous:
        if r.partition in bounds and bounds[r.partition][1] < r.end:
            raise LedgerBroken(
                f"{r.topic}-{r.partition}: the source ends at offset {bounds[r.partition][1]}, and rows up to {r.end} were taken "
                "of it: its newest commits are gone. See `lockstep ledger verify`. Nothing was read or written."
            )
    log = TopicOffsets(source[0].topic, source[0].topic_id, bounds)
    new = sorted(bounds.keys() - {r.partition for r in previous})
    begun = [Range(log.topic, log.topic_id, p, bounds[p][0], bounds[p][0]) for p in new]
    return plan([*previous, *begun], log, max_offsets)


def _shares(backlog: Mapping[int, int], limit: int) -> dict[int, int]:
    """Share ``limit`` among the backlogs in proportion, by largest remainder; no share exceeds its backlog."""
    total = sum(backlog.values())
    if total <= limit:
        return dict(backlog)
    shares = {p: n * limit // total for p, n in backlog.items()}
    by_remainder = sorted(backlog, key=lambda p: (-(backlog[p] * limit % total), p))
    for p in by_remainder[: limit - sum(shares.values())]:
        shares[p] += 1
    return shares
