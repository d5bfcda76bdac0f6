"""What leaves the machines of a job arrives as it was, and a failure names its view."""

from datetime import UTC, datetime
from decimal import Decimal

import pyarrow as pa

from lockstep.definition import states
from lockstep.definition.machine import as_table, failure, found_failure

SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("us", tz="UTC")),
        ("name", pa.string()),
        ("amount", pa.decimal128(14, 3)),
        ("rate", pa.float64()),
        ("number", pa.int64()),
    ]
)


def test_a_row_is_the_same_after_its_way_through_the_state_store():
    row = {
        "at": datetime(2026, 11, 22, 10, 0, 0, 123456, UTC),
        "name": "Zoë\n",
        "amount": Decimal("12.345"),
        "rate": 1 / 3,
        "number": 2**60,
    }
    table = as_table([states.loads(states.dumps(row)), {"at": None, "name": "b"}], SCHEMA)
    assert table.schema == SCHEMA
    assert table.to_pylist() == [row, {"at": None, "name": "b", "amount": None, "rate": None, "number": None}]


def test_the_view_that_failed_is_found_in_sparks_report():
    report = (
        f"[STREAM_FAILED] Query terminated with exception: PythonException: {failure('ad_ctr', ValueError('x'))}\n at"
    )
    assert found_failure(report) == ("ad_ctr", "the machine of view ad_ctr failed: ValueError: x")
    assert found_failure("[STREAM_FAILED] a broker does not answer") is None
