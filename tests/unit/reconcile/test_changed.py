"""Which rows of a view that upserts are compared again: all that may differ now, and of a long history only the end."""

import json
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from deltalake import DeltaTable
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.simulation.streams import BALANCES

from lockstep import lake
from lockstep.definition import Keyed, states
from lockstep.definition.tables import gold_of, live_of
from lockstep.lake import Txn
from lockstep.lake.small_commits import SmallCommits, collect
from lockstep.reconcile.changed import Compared, compared, first_to_compare, may_differ
from lockstep.reconcile.difference import Cause, Difference, Kind, Side
from lockstep.reconcile.inputs import ComparisonInput
from lockstep.settings import Settings

pytestmark = pytest.mark.usefixtures("simulated_contracts")
START = datetime(2026, 11, 10, 10, tzinfo=UTC)
OF_TIMES = replace(
    BALANCES, columns={"since": "TIMESTAMP", "account_id": "STRING", "buys": "BIGINT"}, key=("since", "account_id")
)
OF_NUMBERS = replace(
    OF_TIMES, columns={"version": "BIGINT", "account_id": "STRING", "buys": "BIGINT"}, key=("account_id", "version")
)
TYPES = {"TIMESTAMP": pa.timestamp("us", tz="UTC"), "STRING": pa.string(), "BIGINT": pa.int64()}
# Of a table: the buys by the number of an account, whose place in time is its number, too.
Buys = Mapping[int, int]


def key(view: Keyed, number: int) -> dict[str, Any]:
    places = {"since": START + timedelta(minutes=number), "version": number, "account_id": f"a{number}"}
    return {name: places[name] for name in view.key}


def key_json(view: Keyed, number: int) -> str:
    found = key(view, number)
    return json.dumps({n: states.text(value) if isinstance(value, datetime) else value for n, value in found.items()})


class Layers:
    """Both tables of a view, with what they have."""

    def __init__(self, home: Path, view: Keyed) -> None:
        self.settings, self.view, self.numbers = Settings(home=home), view, count(1)
        self.names = (live_of(view), gold_of(view))
        self.schema = pa.schema([(name, TYPES[kind]) for name, kind in view.columns.items()])
        self.buys: dict[str, dict[int, int]] = {name: {} for name in self.names}
        for name in self.names:
            DeltaTable.create(lake.path(self.settings, name), self.schema)

    def merge(self, table: str, buys: Buys) -> None:
        """Upsert rows as both layers do."""
        rows = [key(self.view, number) | {"buys": value} for number, value in buys.items()]
        txn = Txn("writer", next(self.numbers))
        commits = SmallCommits(self.settings, table)
        commits.merge(pa.Table.from_pylist(rows, self.schema), self.view.key, "true", txn, {"writer": "live"})
        self.buys[table] |= buys

    def remove(self, table: str, number: int) -> None:
        """Remove a row by hand."""
        DeltaTable(lake.path(self.settings, table)).delete(f"account_id = 'a{number}'")
        self.buys[table].pop(number, None)

    def remove_by_merge(self, table: str, number: int) -> None:
        """The same with a merge, as somebody may write one."""
        opened = DeltaTable(lake.path(self.settings, table))
        row = pa.table({"account_id": [f"a{number}"]})
        merge = opened.merge(row, "t.account_id = s.account_id", source_alias="s", target_alias="t")
        merge.when_matched_delete().execute()

    def compact(self, table: str) -> None:
        SmallCommits(self.settings, table).compact()

    def rows(self) -> ComparisonInput:
        live, batch = (SmallCommits(self.settings, name).version for name in self.names)
        nothing = cast(Any, None)
        return ComparisonInput(START, nothing, nothing, nothing, nothing, live, batch)

    def found(self, before: Compared | None) -> dict[str, set[str]]:
        """By table, the accounts whose rows are compared."""
        where = may_differ(self.settings, self.view, before, self.rows())
        return {name: {*collect(self.settings, name, where)["account_id"].to_pylist()} for name in self.names}

    def compared(self) -> Compared | None:
        """What a comparison of all rows leaves to the next one."""
        live, gold = (self.buys[name] for name in self.names)
        differing = [number for number in live.keys() | gold.keys() if live.get(number) != gold.get(number)]
        wrong = (
            Difference(START, key_json(self.view, number), Kind.CHANGED, Side("live").wrong(), Side("gold"))
            for number in differing
        )
        return compared(self.settings, self.view, self.rows(), [first_to_compare(self.view, [one]) for one in wrong])


TABLES = st.sampled_from([0, 1])
NUMBERS = st.integers(0, 9)
STEPS = st.one_of(
    st.tuples(st.just("merge"), TABLES, st.dictionaries(NUMBERS, st.integers(0, 3), min_size=1, max_size=3)),
    st.tuples(st.just("remove"), TABLES, NUMBERS),
    st.tuples(st.just("compact"), TABLES),
    st.tuples(st.just("compare")),
)


@pytest.mark.parametrize("view", [OF_TIMES, OF_NUMBERS], ids=["times", "numbers"])
@settings(max_examples=40)
@given(steps=st.lists(STEPS, min_size=2, max_size=10))
def test_a_row_that_has_changed_or_differs_is_compared_again(view: Keyed, steps: list[tuple[Any, ...]]) -> None:
    with tempfile.TemporaryDirectory() as home:
        layers = Layers(Path(home), view)
        before, then = layers.compared(), {name: dict(of) for name, of in layers.buys.items()}
        for action, *arguments in [*steps, ("compare",)]:
            if action != "compare":
                table, *more = arguments
                getattr(layers, action)(layers.names[table], *more)
                continue
            live, gold = (layers.buys[name] for name in layers.names)
            changed = {n for n in range(10) for name in layers.names if layers.buys[name].get(n) != then[name].get(n)}
            wanted = changed | {n for n in range(10) if live.get(n) != gold.get(n)}
            found = layers.found(before)
            for name in layers.names:
                assert {f"a{number}" for number in wanted & layers.buys[name].keys()} <= found[name]
            before, then = layers.compared(), {name: dict(of) for name, of in layers.buys.items()}


@pytest.fixture(params=[OF_TIMES, OF_NUMBERS], ids=["times", "numbers"])
def layers(request: pytest.FixtureRequest, tmp_path: Path) -> Layers:
    """Both tables with the same hundred rows."""
    both = Layers(tmp_path, request.param)
    for name in both.names:
        both.merge(name, dict.fromkeys(range(100), 1))
    return both


def accounts(numbers: range) -> set[str]:
    return {f"a{number}" for number in numbers}


def of_both(layers: Layers, numbers: range) -> dict[str, set[str]]:
    return {name: accounts(numbers) for name in layers.names}


def test_of_a_long_history_only_the_end_is_compared_again(layers: Layers) -> None:
    before = layers.compared()
    for name in layers.names:
        layers.merge(name, dict.fromkeys(range(100, 103), 1))
        layers.compact(name)
    assert layers.found(before) == of_both(layers, range(100, 103))
    assert layers.found(layers.compared()) == of_both(layers, range(0)), "nothing is new"


def test_a_row_that_differs_is_compared_again_until_it_does_not_and_what_is_newer_with_it(layers: Layers) -> None:
    live, gold = layers.names
    layers.merge(gold, {98: 2})
    before = layers.compared()
    assert before is not None and layers.found(before)[live] == accounts(range(98, 100))
    layers.merge(live, {98: 2})
    assert "a98" in layers.found(before)[live]
    assert layers.found(layers.compared()) == of_both(layers, range(0))


def test_a_difference_with_a_cause_that_lasts_is_settled(layers: Layers) -> None:
    late = Difference(START, key_json(layers.view, 5), Kind.CHANGED, Side("1").wrong(Cause.LATE), Side("2"))
    passing = Difference(START, key_json(layers.view, 7), Kind.CHANGED, Side("1").wrong(Cause.NOT_YET_SEEN), Side("2"))
    column = "version" if "version" in layers.view.key else "since"
    assert first_to_compare(layers.view, [late]) is None
    assert first_to_compare(layers.view, [late, passing]) == json.loads(passing.key)[column]


@pytest.mark.parametrize("name", [0, 1])
@pytest.mark.parametrize("how", ["remove", "remove_by_merge"])
def test_all_is_compared_again_where_somebody_else_has_removed_a_row(layers: Layers, name: int, how: str) -> None:
    for table in layers.names:
        # In a file of its own, so that no file is written for the rows that stay.
        layers.merge(table, {100: 1})
    before = layers.compared()
    getattr(layers, how)(layers.names[name], 100)
    other = layers.names[1 - name]
    assert layers.found(before)[other] == accounts(range(101))


def test_all_is_compared_the_first_time(layers: Layers) -> None:
    assert layers.found(None) == of_both(layers, range(100))


def test_all_is_compared_where_an_older_version_is_read_than_before(layers: Layers) -> None:
    layers.merge(layers.names[0], {100: 1})
    before, rows = layers.compared(), layers.rows()
    older = replace(rows, live_version=(rows.live_version or 0) - 1)
    assert may_differ(layers.settings, layers.view, before, rows) != "true"
    assert may_differ(layers.settings, layers.view, before, older) == "true"


def test_all_is_compared_where_the_log_does_not_have_the_version_any_more(layers: Layers) -> None:
    before = layers.compared()
    assert before is not None
    layers.merge(layers.names[0], {100: 1})
    log = Path(lake.path(layers.settings, layers.names[0])) / "_delta_log"
    DeltaTable(log.parent).create_checkpoint()
    for version in range(before.live + 1):
        (log / f"{version:020d}.json").unlink()
    assert layers.found(before)[layers.names[1]] == accounts(range(100))


def test_all_is_compared_where_versions_of_a_log_that_was_lost_came_again(layers: Layers) -> None:
    live, gold = layers.names
    layers.merge(live, {50: 2})
    layers.merge(live, {50: 1})
    before = layers.compared()
    assert before is not None and before.open is None
    (Path(lake.path(layers.settings, live)) / "_delta_log" / f"{before.live:020d}.json").unlink()
    layers.merge(live, {99: 1})
    assert layers.rows().live_version == before.live
    assert layers.found(before)[gold] == accounts(range(100))


def test_all_is_compared_of_a_view_whose_key_does_not_grow_with_time(layers: Layers) -> None:
    by_name = replace(layers.view, key=("account_id",))
    assert may_differ(layers.settings, by_name, layers.compared(), layers.rows()) == "true"
