"""The stream of a view's results has the final rows of gold, whatever is rewritten, killed or late; each change is sent once.

Gold and silver are Delta tables here. Kafka is a list, and silver has what was read of it.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pytest
from deltalake import write_deltalake
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.ops_records import OpsRecords
from tests.support.results import PAGE_MINUTES

from lockstep import lake, ledger
from lockstep.control import records
from lockstep.definition.registry import VIEWS
from lockstep.errors import LeaseHeld
from lockstep.lake.small_commits import SmallCommits
from lockstep.serving import publish_changelog, publish_results
from lockstep.settings import Settings

VIEW = VIEWS["page_views_per_minute"]
GOLD, SILVER = f"gold.{VIEW.name}", "silver.page_minutes"
START, MINUTE = datetime(2026, 11, 10, 10, tzinfo=UTC), timedelta(minutes=1)
INSTANT = pa.timestamp("us", "UTC")
SCHEMA = pa.schema([("window_start", INSTANT), ("window_end", INSTANT), ("page", pa.string()), ("views", pa.int64())])
# By minute and page.
Table = dict[tuple[int, str], int]


class Killed(BaseException):
    """As SIGKILL, nothing catches it."""


class World:
    """Gold, the topic, and silver, which has read some of the topic."""

    def __init__(self, config: Settings) -> None:
        self.config = config
        self.gold: Table = {}
        self.until = 0
        self.topic: list[dict[str, Any]] = []
        self.read = 0
        self.newest: dict[str, Any] = {"batch_id": -1}
        self.is_fenced = False
        self.sends_before_kill: int | None = None
        write_deltalake(lake.path(config, GOLD), SCHEMA.empty_table())
        self.take()

    # Gold.

    def roll_up(self, minutes: int, rows: Table) -> None:
        """Time goes on: rows of windows from the first that is not final on, and of the next two."""
        first, self.until = self.until, self.until + minutes
        new = {key: views for key, views in rows.items() if first <= key[0] < self.until + 2}
        self.gold |= new
        span = (min(m for m, _ in new), max(m for m, _ in new) + 1) if new else None
        self._commit(span)

    def rewrite(self, low: int, high: int, rows: Table, *, names_interval: bool) -> None:
        """As a replay does, or an erasure, whose first commit names no interval."""
        inside = {key: views for key, views in rows.items() if low <= key[0] < high}
        self.gold = {key: views for key, views in self.gold.items() if not low <= key[0] < high} | inside
        self._commit((low, high), names_interval=names_interval)

    def _commit(self, span: tuple[int, int] | None, *, names_interval: bool = True) -> None:
        previous = ledger.latest(self.config, GOLD)
        interval = span and (at(span[0]), at(span[1]))
        named = {"span": interval and [moment.isoformat() for moment in interval]} if names_interval else {}
        record = ledger.record("rollup", previous, "run", [], until=at(self.until).isoformat(), **named)
        table, txn = SmallCommits(self.config, GOLD), ledger.txn(GOLD, record)
        if interval is None:
            table.append(SCHEMA.empty_table(), txn, record)
            return
        rows = {key: views for key, views in self.gold.items() if span and span[0] <= key[0] < span[1]}
        table.replace(arrow(rows), VIEW.interval(*interval), txn, record)

    @property
    def final(self) -> Table:
        return {key: views for key, views in self.gold.items() if key[0] + 1 <= self.until}

    # The topic, in the place of ExactlyOnce.

    def open(self) -> dict[str, Any]:
        self.is_fenced = True
        return self.newest

    def send(self, rows: list[Any], batch: int) -> int:
        assert batch > self.newest["batch_id"]
        if self.sends_before_kill == 0:
            raise Killed  # Before it has sent anything.
        self.topic += [json.loads(row.value) for row in rows]
        self.newest = {"batch_id": batch}
        if self.sends_before_kill is not None:
            self.sends_before_kill -= 1
            if self.sends_before_kill == 0:
                raise Killed
        return len(rows)

    # Silver.

    def is_behind(self, *_: Any) -> bool:
        assert self.is_fenced, "somebody else may still send, so what silver lacks is not known"
        return self.read < len(self.topic)

    def take(self) -> None:
        """Read the topic to its end."""
        self.read = len(self.topic)
        alive = self.seen()
        deleted = {(minute_of(r["before"]), r["before"]["page"]): 0 for r in self.topic if r["op"] == "d"}
        of_both = [(arrow(alive), False), (arrow({k: v for k, v in deleted.items() if k not in alive}), True)]
        marked = [
            rows.append_column("_deleted", pa.array([gone] * rows.num_rows, pa.bool_())) for rows, gone in of_both
        ]
        write_deltalake(lake.path(self.config, SILVER), pa.concat_tables(marked), mode="overwrite")

    def seen(self) -> Table:
        """The oracle: what a reader of the topic knows, who checks each change against what it has."""
        table: Table = {}
        for record in self.topic[: self.read]:
            before, after = record["before"], record["after"]
            key = (minute_of(after or before), (after or before)["page"])
            assert table.get(key) == (before and before["views"]), "what it says of before is so"
            assert before != after
            if after is None:
                del table[key]
            else:
                table[key] = after["views"]
        return table

    def settle(self) -> None:
        """All runs that it takes until nothing is left to be published."""
        self.take()
        for _ in range(100):
            if not publish_results.unpublished_since(self.config, [PAGE_MINUTES]):
                return
            self.publish()
            self.take()
        raise AssertionError("each run has to bring it on")

    def publish(self, kill_after: int | None = None) -> int:
        self.sends_before_kill, self.is_fenced = kill_after, False
        try:
            return sum(publish_results.publish_all(self.config, [PAGE_MINUTES]).values())
        except Killed:
            return 0
        finally:
            self.sends_before_kill = None


def at(minute: int) -> datetime:
    return START + minute * MINUTE


def minute_of(row: Mapping[str, Any]) -> int:
    return (datetime.fromisoformat(row["window_start"]) - START) // MINUTE


def arrow(rows: Table) -> pa.Table:
    found = [
        {"window_start": at(m), "window_end": at(m + 1), "page": page, "views": views}
        for (m, page), views in rows.items()
    ]
    return pa.Table.from_pylist(found, SCHEMA)


@contextmanager
def made(at_once: int = 1_000) -> Iterator[World]:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        world, remembered = World(Settings(home=Path(folder))), OpsRecords(patch)

        def put(_: Settings, table: str, written: list[records.Record]) -> None:
            for record in written:
                remembered.write(table, record.fields, record.key)

        patch.setattr(records, "put", put)
        patch.setattr(publish_changelog, "AT_ONCE", 2)
        patch.setattr(publish_results, "AT_ONCE", at_once)
        patch.setattr(publish_results, "lease", lambda *_: nullcontext())
        patch.setattr(publish_results, "visible", lambda _: {})
        patch.setattr(publish_results, "with_results", lambda _: [(PAGE_MINUTES, VIEW)])
        patch.setattr(publish_results, "create_topics", lambda *_: [])
        patch.setattr(publish_results, "ExactlyOnce", lambda *_: world)
        patch.setattr(publish_results.bronze, "behind", world.is_behind)
        patch.setattr(publish_results.silver, "behind", lambda *_: False)
        yield world


tables = st.dictionaries(st.tuples(st.integers(0, 11), st.sampled_from("ab")), st.integers(1, 3), max_size=12)
steps = st.one_of(
    st.tuples(st.just("roll_up"), st.integers(1, 3), tables),
    st.tuples(st.just("rewrite"), st.integers(0, 8), st.integers(1, 4), tables, st.booleans()),
    st.tuples(st.just("publish"), st.none() | st.integers(0, 2)),
    st.tuples(st.just("take")),
)


@settings(max_examples=25)
@given(done=st.lists(steps, max_size=9), at_once=st.sampled_from([1, 3, 1_000]))
def test_when_all_has_run_the_stream_has_the_final_rows(done: list[tuple[Any, ...]], at_once: int) -> None:
    with made(at_once) as world:
        for kind, *given_ in done:
            match kind:
                case "roll_up":
                    world.roll_up(*given_)
                case "rewrite":
                    low, length, rows, names_interval = given_
                    world.rewrite(low, low + length, rows, names_interval=names_interval)
                case "publish":
                    world.publish(*given_)
                case _:
                    world.take()
        world.settle()
        assert world.seen() == world.final
        assert world.publish() == 0


def test_many_rows_are_published_in_steps_each_of_which_silver_has_read_before_the_next() -> None:
    with made(at_once=2) as world:
        world.roll_up(5, {(minute, "a"): 1 for minute in range(5)})
        assert world.publish() == 2
        assert world.publish() == 0, "silver has not read it"
        world.take()
        assert world.publish() == 2
        assert publish_results.unpublished_since(world.config, [PAGE_MINUTES]).keys() == {"page_minutes"}
        world.take()
        assert world.publish() == 1
        assert publish_results.unpublished_since(world.config, [PAGE_MINUTES]) == {}
        world.take()
        world.rewrite(0, 5, world.gold | {(4, "a"): 2}, names_interval=False)
        assert world.publish() == 1, "one run compares all, since nothing was sent before the last step"


def test_only_what_is_final_is_published_and_each_change_once() -> None:
    with made() as world:
        world.roll_up(2, {(0, "a"): 1, (1, "a"): 2, (2, "a"): 3})
        assert world.publish() == 2
        assert world.publish() == 0, "silver has not read it, and nothing is new"
        world.take()
        world.roll_up(1, {})
        assert world.publish() == 1, "the window was there before, and is final now"
        world.take()
        world.rewrite(0, 2, {(0, "a"): 1, (1, "b"): 5}, names_interval=True)
        assert world.publish() == 2
        assert [record["op"] for record in world.topic] == ["c", "c", "c", "c", "d"]
        world.take()
        world.rewrite(0, 2, {(0, "a"): 1, (1, "a"): 2, (1, "b"): 5}, names_interval=False)
        assert world.publish() == 1
        assert world.topic[-1]["op"] == "c", "what was deleted is new when it comes back"


def test_what_a_killed_run_has_sent_is_awaited_and_not_sent_again() -> None:
    with made() as world:
        world.roll_up(4, {(minute, "a"): 1 for minute in range(4)})
        assert world.publish(kill_after=1) == 0
        assert len(world.topic) == 2
        assert world.publish() == 0, "silver does not have these two yet"
        world.take()
        assert world.publish() == 2
        world.take()
        assert world.seen() == world.final


def test_a_table_that_was_made_again_is_held_against_all_that_the_stream_has() -> None:
    with made() as world:
        world.roll_up(3, {(0, "a"): 1, (1, "a"): 1, (2, "a"): 1})
        assert world.publish() == 3
        world.take()
        lake.remove(lake.path(world.config, GOLD))
        write_deltalake(lake.path(world.config, GOLD), SCHEMA.empty_table())
        world.gold, world.until = {}, 0
        world.roll_up(2, {(0, "a"): 1, (1, "a"): 4})
        assert world.publish() == 2, "also what is later than all that is final now is gone"
        world.take()
        assert world.seen() == {(0, "a"): 1, (1, "a"): 4}


def test_what_has_not_passed_the_gate_of_gold_is_published_once_it_has() -> None:
    with made() as world, pytest.MonkeyPatch.context() as patch:
        world.roll_up(1, {(0, "a"): 1})
        passed = lake.newest_version(world.config, GOLD)
        world.roll_up(1, {(1, "a"): 1})
        with patch.context() as gate:
            gate.setattr(publish_results, "visible", lambda _: {GOLD: passed})
            assert world.publish() == 1
            world.take()
            assert world.seen() == {(0, "a"): 1}
        assert world.publish() == 1


def test_an_environment_publishes_nothing() -> None:
    with made() as world:
        world.roll_up(1, {(0, "a"): 1})
        assert publish_results.publish_all(world.config.model_copy(update={"env": "dev"}), [PAGE_MINUTES]) == {}
        assert world.topic == []


def test_results_of_a_view_that_is_being_written_wait_for_the_next_run() -> None:
    with made() as world, pytest.MonkeyPatch.context() as patch:
        world.roll_up(1, {(0, "a"): 1})

        def held(*_: Any) -> Any:
            raise LeaseHeld("a replay writes it")

        with patch.context() as writing:
            writing.setattr(publish_results, "lease", held)
            assert world.publish() == 0
        assert world.publish() == 1


def test_results_that_wait_are_named_with_the_time_since_when_they_do() -> None:
    with made() as world:
        assert publish_results.unpublished_since(world.config, [PAGE_MINUTES]) == {}
        world.roll_up(1, {(0, "a"): 1})
        first = next(lake.commits(world.config, GOLD)).timestamp
        world.roll_up(1, {(1, "a"): 1})
        since = publish_results.unpublished_since(world.config, [PAGE_MINUTES])
        assert since == {"page_minutes": datetime.fromtimestamp(first / 1000, UTC)}
        world.publish()
        assert publish_results.unpublished_since(world.config, [PAGE_MINUTES]) == {}
