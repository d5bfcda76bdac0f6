"""What the tasks of a day do when a part of their work fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, cast

import pendulum
import pytest
from tests.support.commits import entry, ranges
from tests.support.ports import own_ports
from tests.support.records import START

from lockstep import marts_tasks
from lockstep.definition import View
from lockstep.errors import LockstepError, SomeFailed
from lockstep.for_each import for_each
from lockstep.ledger import Entry
from lockstep.marts.build import Built
from lockstep.results import Results
from lockstep.settings import Settings


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    """The settings that the tasks load: a home of the test's own, and ports that nobody listens on."""
    own_ports(monkeypatch, tmp_path)
    return Settings()


def test_a_view_that_cannot_be_rebuilt_stops_neither_the_other_views_nor_the_marts(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def build(*_: object) -> Built:
        done.append("marts")
        return Built(["daily_orders"])

    def rebuild(spark: object, settings: Settings, view: View, start: datetime, *_: object) -> Entry:
        # Of two times of Airflow's own, the difference cannot be divided.
        assert (start - timedelta(hours=1) - START) // timedelta(minutes=1) == -60
        if view.name == "trending_pages":
            raise LockstepError("its gold is torn")
        done.append(view.name)
        return entry(ranges({0: (0, 10)}), table=f"gold.{view.name}")

    @contextmanager
    def without_server(*_: object) -> Iterator[object]:
        yield object()

    monkeypatch.setenv("LOCKSTEP_VIEWS", "page_views_per_minute,trending_pages")
    monkeypatch.setattr(marts_tasks, "backfilling", without_server)
    monkeypatch.setattr(marts_tasks, "connect", without_server)
    monkeypatch.setattr(marts_tasks, "for_each", partial(for_each, connect=cast(Any, without_server)))
    monkeypatch.setattr(marts_tasks.rollup, "rebuild", rebuild)
    monkeypatch.setattr(marts_tasks.marts, "build", build)
    monkeypatch.setattr(marts_tasks.marts, "lease", without_server)
    with pytest.raises(SomeFailed, match="trending_pages: its gold is torn"):
        marts_tasks.rebuild_day(
            pendulum.instance(START),
            pendulum.instance(START).add(days=1),
            "run-1",
            again=True,
            results=(results := Results()),
        )
    assert done == ["page_views_per_minute", "marts"]
    assert [(row["table"], row["outcome"], row["detail"]) for row in results.as_rows()] == [
        ("gold.trending_pages", "failed", "its gold is torn"),
        ("gold.page_views_per_minute", "done", f"{START:%F} is computed again"),
        (f"marts of {START:%F}", "done", "1 models and tests"),
    ]

    monkeypatch.setattr(marts_tasks.rollup, "is_current", lambda _, view: view.name == "trending_pages")
    done.clear()
    built = marts_tasks.rebuild_day(
        START, START + timedelta(days=1), "run-2", again=False, results=(results := Results())
    )
    assert built == {"gold": ["gold.page_views_per_minute"], "marts": ["daily_orders"]}
    assert ("gold.trending_pages", "nothing new") in [(row["table"], row["outcome"]) for row in results.as_rows()]
