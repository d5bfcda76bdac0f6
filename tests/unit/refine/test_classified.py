"""Rows that were collected: what is counted of them."""

import pyarrow as pa

from lockstep import ledger
from lockstep.refine.classified import Collected


def rows(*outcomes_and_fields):
    outcomes, fields = zip(*outcomes_and_fields, strict=True)
    return Collected(pa.table({"_outcome": outcomes, "_unknown": pa.array(fields, pa.string())}))


def test_unknown_fields_are_counted_by_rows_of_silver():
    found = rows(
        ("silver", '["campaign","utm"]'),
        ("silver", '["campaign"]'),
        ("silver", None),
        ("duplicates", '["campaign"]'),
        ("quarantined", '["other"]'),
    )
    assert found.unknown() == {"campaign": 2, "utm": 1}
    assert rows(("silver", None)).unknown() == {}


def test_only_the_most_frequent_unknown_fields_are_counted():
    names = [f"f{n:03}" for n in range(ledger.MOST_UNKNOWN + 10)]
    found = rows(*(("silver", f'["{name}"]') for name in [*names, names[-1]]))
    assert found.unknown() == {**dict.fromkeys(names[: ledger.MOST_UNKNOWN - 1], 1), names[-1]: 2}
