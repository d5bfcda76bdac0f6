"""Orders of the open shop: each has the rows of an order of the history."""

import pandas as pd

from shop.simulate.keep_open import Templates
from shop.simulate.real_time import Order

LINES = pd.DataFrame(
    {
        "order_id": ["a", "b", "a"],
        "line_no": [1, 1, 2],
        "ordered_at": pd.to_datetime(["2026-01-01", "2026-01-02", "2026-01-01"], utc=True),
    }
)


def test_new_orders_have_the_rows_of_their_templates_under_their_own_ids_and_times() -> None:
    rows = Templates(LINES).of([Order("n1", 1000, "b"), Order("n2", 2500, "a"), Order("n3", 3000, "b")])
    assert rows[["order_id", "line_no"]].values.tolist() == [["n1", 1], ["n2", 1], ["n2", 2], ["n3", 1]]
    assert [f"{at:%F %T.%f}"[:-3] for at in rows["ordered_at"]] == [
        "1970-01-01 00:00:01.000",
        "1970-01-01 00:00:02.500",
        "1970-01-01 00:00:02.500",
        "1970-01-01 00:00:03.000",
    ]
    assert rows.dtypes.to_dict() == LINES.dtypes.to_dict()


def test_an_order_whose_template_has_no_lines_has_none() -> None:
    assert Templates(LINES).of([Order("n1", 1000, "z")]).empty
