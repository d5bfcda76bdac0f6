"""The torn log of one table stops its own stream and view, and no others."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.servers import like
from tests.support.shop import Shop
from tests.support.torn import newest_commits, tear

from lockstep import ledger, tasks
from lockstep.contracts import Contract
from lockstep.definition import View
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import bronze_of, gold_of, serving_of, silver_of
from lockstep.errors import LockstepError
from lockstep.quality import suites
from lockstep.quality.readiness import is_open
from lockstep.results import Results
from lockstep.settings import Settings


@dataclass
class Flow:
    """A stream of the test's own, with a view."""

    contract: Contract
    view: View
    shop: Shop

    @property
    def tables(self) -> list[str]:
        return [bronze_of(self.contract), silver_of(self.contract), gold_of(self.view)]

    def arrive(self, number: int) -> None:
        """A page view of one more minute, which is final after it."""
        self.shop.view(f"e{number}", 60 * number)
        self.shop.heartbeat(60 * number + 70)
        self.shop.flush()


@pytest.fixture
def flows(settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Flow]]:
    """Two streams, each with a view and suites: all that the tasks know of."""
    with like(settings, "page_views") as one, like(settings, "page_views") as another:
        found = []
        for contract in (one, another):
            view = replace(VIEWS["page_views_per_minute"], name=f"per_minute_{contract.name[-8:]}", input=contract.name)
            monkeypatch.setitem(VIEWS, view.name, view)
            found.append(Flow(contract, view, Shop(settings, contract)))
        known = {flow.contract.name: flow.contract for flow in found}
        own = settings.model_copy(update={"project": tmp_path, "views": ",".join(flow.view.name for flow in found)})
        rows = {"type": "expect_table_row_count_to_be_between", "kwargs": {"min_value": 1}}
        for table in (table for flow in found for table in flow.tables[1:]):
            file = suites.suite_file(own, table)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps({"name": table, "expectations": [rows]}))
        monkeypatch.setattr(tasks.configuration, "load", lambda: own)
        monkeypatch.setattr(tasks, "CONTRACTS", known)
        monkeypatch.setattr(tasks, "of_kind", lambda _: known)
        tables = [table for flow in found for table in flow.tables]
        monkeypatch.setattr(tasks, "lake", SimpleNamespace(tables=lambda _: tables))
        yield found


def run() -> dict[str, str]:
    """Run all tasks as the DAGs do; by task that has failed, its message and its notes."""
    steps = {
        "ingest": lambda: tasks.ingest("events", "run", Results()),
        "refine": lambda: tasks.refine("run", Results()),
        "silver": lambda: tasks.gate("silver", "run", Results()),
        "roll_up": lambda: tasks.roll_up("run", Results()),
        "gold": lambda: tasks.gate("gold", "run", Results()),
        "maintain": lambda: tasks.maintain("run", Results()),
    }
    failed = {}
    for name, step in steps.items():
        try:
            step()
        except LockstepError as error:
            failed[name] = "\n".join([str(error), *getattr(error, "__notes__", [])])
    return failed


def test_one_torn_log_is_named_by_each_task_that_reads_it_and_all_others_go_on(
    spark: Any, settings: Settings, flows: list[Flow]
) -> None:
    first, second = flows
    named = {
        bronze_of(first.contract): {"ingest", "refine", "maintain"},
        silver_of(first.contract): {"refine", "silver", "maintain"},
        gold_of(first.view): {"roll_up", "gold", "maintain"},
    }
    for flow in flows:
        flow.arrive(0)
    assert run() == {}
    for number, (table, tasks_that_fail) in enumerate(named.items(), 1):
        for flow in flows:
            flow.arrive(number)
        [newest] = newest_commits(settings, table, 1)
        whole = newest.read_bytes()
        tear(settings, table)
        try:
            failed = run()
        finally:
            newest.write_bytes(whole)
        assert {name for name, message in failed.items() if table in message} == tasks_that_fail, failed
        assert failed.keys() == tasks_that_fail
        assert not [m for m in failed.values() for other in second.tables if other in m], failed
        for other in second.tables:
            entry = ledger.latest(settings, other)
            assert entry
            assert entry.seq == number + 1, f"{other} while {table} is torn"
        assert all(is_open(tasks.configuration.load(), other) for other in second.tables[1:])
        if table == gold_of(first.view):
            assert serving_of(first.view) in failed["gold"]
        assert spark.table(serving_of(second.view)).count() == number + 1
        assert run() == {}, f"{table} is whole again"
