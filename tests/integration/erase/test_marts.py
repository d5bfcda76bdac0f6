"""A person who is erased is gone from the marts: her days are built again, and no old version has her."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.erased import left
from tests.support.marts import Orders, order, orders_of

from lockstep.control import erased
from lockstep.erase import run, scope
from lockstep.marts import published
from lockstep.settings import Settings


@pytest.fixture
def orders(spark: Any, settings: Settings, tmp_path: Path) -> Iterator[Orders]:
    with orders_of(spark, settings, tmp_path) as found:
        yield found


@pytest.mark.slow
def test_the_days_of_an_erased_person_are_built_again_and_published(spark: Any, orders: Orders, person: str) -> None:
    ann = person
    for number, (day, user) in enumerate(((1, ann), (1, "bob"), (2, "bob"), (9, ann))):
        orders.change(None, order(number, day, kind=user) | {"user_id": user})
    orders.bring_up()
    assert orders.mart() == {"2026-11-01": 2, "2026-11-02": 1, "2026-11-09": 1}
    table = f"marts.{orders.name}"
    assert ann in {row["kind"] for row in spark.table(table).collect()}

    done = run.erase(spark, orders.settings, scope.of_person([orders.contract], ann), "bob", "she asked for it")

    assert done
    assert left(done.receipt, orders.contract) == []
    assert orders.mart() == {"2026-11-01": 1, "2026-11-02": 1}
    assert {row["kind"] for row in spark.table(table).collect()} == {"bob"}
    seen = published.current(orders.settings)
    assert seen
    assert erased.first_version(orders.settings, table) == seen.versions[table], "and nobody may read what was before"
    orders.change(None, order(4, 9, kind="bob") | {"user_id": "bob"})
    assert orders.bring_up() == ["2026-11-09"], "and they go on"
