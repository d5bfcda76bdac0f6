"""What is prepared for several streams at once stops none of them."""

from contextlib import nullcontext

import pytest
from deltalake.exceptions import DeltaError
from pyspark.errors import PySparkException

from lockstep.contracts import CONTRACTS
from lockstep.ledger.ranges import Range
from lockstep.refine import prepare


@pytest.mark.parametrize("error", [DeltaError("a file is gone"), PySparkException("an expression fails")])
def test_one_bad_stream_leaves_each_to_its_own_run(monkeypatch, error):
    def fail(*_):
        raise error

    monkeypatch.setattr(prepare, "next_ranges", lambda _, contract: [Range(contract.topic, "id", 0, 0, 5)])
    monkeypatch.setattr(prepare, "parse_together", fail)
    contracts = [CONTRACTS["page_views"], CONTRACTS["products"]]
    assert prepare.prepare(None, contracts, lambda: nullcontext(None)) == {}
