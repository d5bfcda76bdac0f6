"""What tests of erasures ask of a receipt: the stack is shared, and others write torn files in it on purpose."""

from collections.abc import Iterable, Mapping
from typing import Any

from lockstep.contracts import Contract
from lockstep.erase.scan import UNDECODED, UNREADABLE, Hit


def left(receipt: Mapping[str, Any], contract: Contract) -> list[Hit]:
    """The traces that a receipt names."""
    return traces((Hit(**hit) for hit in receipt["left"]), contract)


def traces(hits: Iterable[Hit], contract: Contract) -> list[Hit]:
    """All of these but what other tests have torn: the test's own files and tables have the end of its stream's name."""
    own = contract.name[-8:]
    return [hit for hit in hits if not hit.what.startswith((UNDECODED, UNREADABLE)) or own in hit.where]
