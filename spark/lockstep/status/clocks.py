"""Topics that take records of clocks which are further ahead than their contracts allow."""

from collections.abc import Iterable
from contextlib import closing
from typing import TYPE_CHECKING

from lockstep.kafka_clients import admin, configs, configured
from lockstep.status.model import ClockAhead

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.settings import Settings

_AHEAD, _TYPE = "message.timestamp.after.max.ms", "message.timestamp.type"


def clocks_ahead(settings: "Settings", contracts: Iterable["Contract"]) -> list[ClockAhead]:
    """The topics that take records whose timestamps are further ahead of the broker's clock than ``max_clock_skew``.

    One such record makes those of other producers late (docs/decisions/late-by-the-log.md). A topic with the broker's own time is
    left out, and so is one whose configuration the account may not see.

    Args:
        contracts: of topics that exist.

    Raises:
        KafkaUnavailable: no broker answers.
    """
    contracts = list(contracts)
    with closing(admin(settings)) as client:
        found = configured(client, {c.topic: (_AHEAD, _TYPE) for c in contracts})
    limits = {topic: int(of[_AHEAD] or 0) for topic, of in found.items() if of.get(_TYPE) == "CreateTime"}
    ahead = [ClockAhead(c.topic, limits.get(c.topic, 0), int(configs(c)[_AHEAD])) for c in contracts]
    return [topic for topic in ahead if topic.taken > topic.allowed]
