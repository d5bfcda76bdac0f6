"""What is compared without Spark is found equal exactly where it is, in the same windows, and all else is left to Spark."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.simulation import reconciliation
from tests.support.simulation.streams import BALANCES, HOPPING, SESSIONS

from lockstep.definition import View
from lockstep.reconcile.equal import compared, together

pytestmark = pytest.mark.usefixtures("simulated_contracts")
START = datetime(2026, 11, 10, 10, tzinfo=UTC)
TYPES = {"TIMESTAMP": pa.timestamp("us", tz="UTC"), "STRING": pa.string(), "BIGINT": pa.int64()}
VALUES = {
    "TIMESTAMP": st.sampled_from([START + timedelta(seconds=25 * n) for n in range(4)]),
    "STRING": st.sampled_from(["a", "b", None]),
    "BIGINT": st.sampled_from([1, 2, None]),
}
Rows = list[dict[str, Any]]


def table(view: View, rows: Rows, **more: pa.Array) -> pa.Table:
    schema = pa.schema([(name, TYPES[kind]) for name, kind in view.output_columns.items()])
    of_rows = pa.Table.from_pylist(rows, schema)
    for name, values in more.items():
        of_rows = of_rows.append_column(name, values)
    return of_rows


def as_rows(of: pa.Table) -> Rows:
    """As they were drawn: Arrow gives times another object for UTC."""
    return [
        {name: value.astimezone(UTC) if isinstance(value, datetime) else value for name, value in row.items()}
        for row in of.to_pylist()
    ]


@st.composite
def layers(draw: st.DrawFn, view: View) -> tuple[Rows, Rows]:
    rows = st.lists(
        st.fixed_dictionaries({name: VALUES[kind] for name, kind in view.output_columns.items()}), max_size=5
    )
    live = draw(rows)
    batch = draw(st.one_of(st.permutations(live), rows))
    if view.upserts and draw(st.booleans()):
        # The layers may have got the changes of a key in another order.
        batch = [row | {"at": draw(VALUES["TIMESTAMP"])} for row in batch]
    return live, batch


@pytest.mark.parametrize("view", [HOPPING, SESSIONS, BALANCES], ids=lambda view: view.name)
@given(data=st.data())
def test_layers_are_equal_where_each_key_has_one_row_and_the_same(view: View, data: st.DataObject) -> None:
    live, batch = data.draw(layers(view))
    updated = pa.array([START] * len(live), TYPES["TIMESTAMP"])
    found = compared(table(view, live, _updated_at=updated), table(view, batch), view)
    assert found is not None
    expected = reconciliation.by_window(live, batch, view)
    rest = reconciliation.by_window(*(as_rows(side) for side in (found.live, found.batch)), view)
    assert together(found.windows, rest).select(expected.column_names).sort_by("window_start").equals(expected)
    # It is not sure of keys that are null.
    unsure = any(row[name] is None for row in found.batch.to_pylist() for name in view.key)
    assert unsure or sum(rest["equal"].to_pylist()) == 0


def test_it_is_not_sure_of_nan() -> None:
    view = replace(HOPPING, columns={"window_start": "TIMESTAMP", "user_id": "STRING", "share": "DOUBLE"})
    rows = pa.table({"window_start": [START], "user_id": ["a"], "share": [float("nan")]})
    found = compared(rows, rows, view)
    assert found is not None
    assert [of.num_rows for of in (found.windows, found.live, found.batch)] == [0, 1, 1]


def test_lists_are_compared_too() -> None:
    view = replace(HOPPING, columns={"window_start": "TIMESTAMP", "user_id": "STRING", "pages": "ARRAY<STRING>"})
    live, batch = (
        pa.table({"window_start": [START] * 3, "user_id": ["a", "b", "c"], "pages": pages})
        for pages in ([["x"], ["x", "y"], None], [["x"], ["y", "x"], None])
    )
    found = compared(live, batch, view)
    assert found is not None
    assert found.windows["equal"].to_pylist() == [2]
    assert [found.live["user_id"].to_pylist(), found.batch["user_id"].to_pylist()] == [["b"], ["b"]]


def test_it_is_not_sure_of_keys_with_fields_of_their_own() -> None:
    view = replace(HOPPING, key=("window_start", "place"))
    rows = pa.table({"window_start": [START], "place": [{"city": "Graz"}]})
    assert compared(rows, rows, view) is None


def test_it_is_not_sure_of_a_column_that_live_does_not_have() -> None:
    live = pa.table({"window_start": [START], "user_id": ["a"]})
    assert compared(live, live.append_column("clicks", pa.array([1])), HOPPING) is None
