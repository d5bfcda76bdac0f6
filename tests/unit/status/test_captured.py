"""What the status says of a captured table that has lost columns in its source database."""

from collections.abc import Collection

import pytest

from lockstep.contracts import CONTRACTS
from lockstep.status.captured import drift

ORDERS = CONTRACTS["orders"]
ALL = {*ORDERS.columns}


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (ALL, ""),
        (ALL | {"added"}, ""),
        (set(), "the source database has no table public.orders, so nothing of it comes any more"),
        (ALL - {"country"}, "public.orders in the source database has no column country: its changes have null there"),
        (
            ALL - {"country", "kind", "order_id"},
            "public.orders in the source database has no column order_id, country, kind: its changes have null there, and go to "
            "quarantine without order_id, kind",
        ),
    ],
    ids=["all", "more", "no table", "one less", "needed ones less"],
)
def test_what_the_source_lacks_is_named(there: Collection[str], said: str) -> None:
    assert drift(ORDERS, "public.orders", there) == said
