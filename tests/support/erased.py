"""What tests of erasures ask of a receipt: the stack is shared, and others write torn files in it on purpose. And a replay."""

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any

from tests.support.shop import START

from lockstep.contracts import Contract
from lockstep.erase.scan import UNDECODED, UNREADABLE, Hit
from lockstep.replay import run as replay
from lockstep.replay.parse import parse
from lockstep.settings import Settings


def left(receipt: Mapping[str, Any], contract: Contract) -> list[Hit]:
    """The traces that a receipt names."""
    return traces((Hit(**hit) for hit in receipt["left"]), contract)


def traces(hits: Iterable[Hit], contract: Contract) -> list[Hit]:
    """All of these but what other tests have torn: the test's own files and tables have the end of its stream's name."""
    own = contract.name[-8:]
    return [hit for hit in hits if not hit.what.startswith((UNDECODED, UNREADABLE)) or own in hit.where]


def promoted(spark: Any, settings: Settings, stream: Contract) -> None:
    """A full replay of silver and gold, promoted."""
    start, end = ((START + timedelta(hours=hours)).isoformat() for hours in (-1, 2))
    wanted = parse(
        {"reason": "all again", "from": start, "to": end, "topics": [stream.name], "layers": ["silver", "gold"]}
    )
    name = replay.open_replay(spark, settings, wanted, "bob", "run", replay.identify(wanted)).id
    replay.compute(spark, settings, name, "run")
    replay.compare(spark, settings, name, "run")
    replay.approve(spark, settings, name, "run", "bob")
    replay.promote(spark, settings, name, "run")
