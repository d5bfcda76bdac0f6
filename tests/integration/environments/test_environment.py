"""An environment tries a changed view on a sample of production's records, and production has nothing of it."""

import json
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from confluent_kafka import Producer
from pyspark import cloudpickle
from tests.support.shop import START, Shop
from typer.testing import CliRunner

from lockstep import lake, ledger
from lockstep import settings as configuration
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.cli.main import app
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import Input, Keyed, View
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of
from lockstep.environments.apply import apply
from lockstep.environments.diff import Verdict, ViewDiff, diff
from lockstep.environments.remove import EnvironmentMissing, remove
from lockstep.errors import LockstepError
from lockstep.ingest.bronze import ingest
from lockstep.ingest.offsets import offsets_of_existing_topics, topic_offsets
from lockstep.kafka_clients import confluent_config, ensure_topics
from lockstep.refine.silver import refine
from lockstep.settings import Settings

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])
SINCE = (START + timedelta(minutes=4, seconds=30)).isoformat()
# Windows that begin later than the sample and the clock skew of the contract: from 10:10 to 10:19.
COMPARED = 10


def numbered(state: Any, event: Any) -> tuple[Any, list[dict[str, Any]]]:
    """Number the events of a user: each row depends on all events before it."""
    number = (state or 0) + 1
    return number, [{"event_id": event.data["event_id"], "number": number}]


def newest_name(state: Any, event: Any) -> tuple[Any, list[dict[str, Any]]]:
    """The name of a user."""
    return event.data["name"], [{"user_id": event.data["user_id"], "name": event.data["name"]}]


class Environment:
    """An environment of the shared stack, as its commands see it."""

    def __init__(self, patch: pytest.MonkeyPatch, views: list[View]) -> None:
        self._patch, self.name = patch, f"dev_{uuid.uuid4().hex[:8]}"
        patch.setenv("LOCKSTEP_VIEWS", ",".join(view.name for view in views))
        # The command line sets it for its process, which is this one.
        patch.setenv("LOCKSTEP_ENV", "")

    @property
    def settings(self) -> Settings:
        self._patch.setenv("LOCKSTEP_ENV", self.name)
        return configuration.load()

    def apply(self, since: str | None = None) -> list[str]:
        said: list[str] = []
        apply(self.settings, since, said.append)
        return said

    def diff(self, *views: View) -> list[ViewDiff]:
        settings = self.settings
        with connect(settings, "test") as spark:
            return [*diff(spark, settings, views)]

    def run(self, *arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["--env", self.name, *arguments])
        return result.exit_code, result.output

    def schemas(self, spark: Any) -> list[str]:
        return [name for (name,) in spark.sql("SHOW DATABASES").collect() if name.startswith(self.name)]


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Environment]]:
    """Makes environments for some views, and removes what is left of them."""
    made: list[Environment] = []

    def make(*views: View) -> Environment:
        made.append(Environment(monkeypatch, [*views]))
        return made[-1]

    yield make
    for one in made:
        try:
            remove(one.settings)
        except EnvironmentMissing:
            continue


def produce(settings: Settings, contract: Contract, lsn: int, user_id: str = "", name: str = "") -> None:
    """A row of the table users, as Debezium publishes it, or a TRUNCATE of the table."""
    row = {"user_id": user_id, "name": name, "age": 30, "updated_at": START.isoformat()} if user_id else None
    source = {"lsn": lsn, "ts_ms": int(START.timestamp() * 1000), "sequence": f'["{lsn}","{lsn}"]'}
    value = json.dumps({"before": None, "after": row, "op": "u" if row else "t", "source": source}).encode()
    producer = Producer(confluent_config(settings) | {"log_level": 0})
    producer.produce(contract.topic, value, user_id.encode())
    assert producer.flush(30) == 0


def roll(spark: Any, settings: Settings, *of: Contract | View) -> None:
    """Take all that is new through production."""
    for one in of:
        if isinstance(one, Contract):
            ingest(spark, settings, one, "run")
            refine(spark, settings, one, "run")
        else:
            roll_up(spark, settings, one, "run")


@pytest.fixture
def production(spark: Any, settings: Settings, stream: Contract, view: View, shop: Shop) -> Settings:
    """Twenty minutes with a view each, rolled up."""
    for minute in range(20):
        shop.view(f"e{minute}", minute * 60, user_id=f"u{minute % 3}")
    shop.heartbeat(20 * 60 + 30)
    shop.flush()
    roll(spark, settings, stream, view)
    return settings


def state(settings: Settings, stream: Contract, view: View, rows: Callable[[str], list[Any]]) -> tuple[Any, ...]:
    """All of production that an environment could have touched."""
    own = [table for table in lake.tables(settings) if stream.name[-8:] in table]
    versions = {table: lake.newest_version(settings, table) for table in own}
    return versions, topic_offsets(settings, stream.topic), sorted(rows(gold_of(view)))


def databases(settings: Settings) -> set[str]:
    with closing(psycopg2.connect(settings.dsn("postgres"))) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database")
        return {name for (name,) in cursor.fetchall()}


def doubled(view: Any) -> View:
    """The same view, in which every page view counts twice."""
    return replace(view, measures={"views": "count(*) * 2"})


def test_a_changed_view_is_tried_and_production_has_nothing_of_it(
    spark: Any, production: Settings, stream: Contract, view: View, rows: Any, environment: Any
) -> None:
    before, dev, other = state(production, stream, view, rows), environment(view), environment(view)
    # 15 views, and a heartbeat in each partition.
    code, said = dev.run("apply", "--since", SINCE)
    assert code == 0, said
    assert f"{Tables.of(stream).bronze}: 18 records" in said
    (same,) = dev.diff(view)
    assert (same.verdict, same.equal, same.examples) == (Verdict.EQUAL, COMPARED, ())

    VIEWS[view.name] = changed = doubled(view)
    assert f"{gold_of(view)}: is computed again, because its definition has changed" in dev.apply()
    (differs,) = dev.diff(changed)
    assert (differs.verdict, differs.changed, differs.equal) == (Verdict.DIFFERENT, COMPARED, 0)
    assert '"page":"/"}: here {"window_end":"2026-11-10T10:11:00' in differs.examples[0]
    assert '"views":2}, in production' in differs.examples[0]
    code, said = dev.run("diff")
    assert (code, "different" in said) == (1, True), said

    other.apply(SINCE)
    assert state(production, stream, view, rows) == before
    code, said = dev.run("remove", "--yes")
    assert code == 0, said
    assert dev.schemas(spark) == []
    assert not Path(dev.settings.lake).exists()
    assert not [*production.home.glob(f"warehouse/{dev.name}*")]
    assert dev.settings.control_database not in databases(production)
    assert other.diff(changed)[0].changed == COMPARED
    assert state(production, stream, view, rows) == before


def test_it_goes_on_where_it_was_up_to_where_production_is(
    spark: Any, production: Settings, stream: Contract, view: View, shop: Shop, environment: Any
) -> None:
    dev = environment(view)
    dev.apply(SINCE)
    shop.view("late to production", 21 * 60)
    shop.heartbeat(23 * 60)
    shop.flush()
    dev.apply()
    assert (
        ledger.latest(dev.settings, gold_of(view)).ranges[0].end
        == ledger.latest(production, gold_of(view)).ranges[0].end
    )
    roll(spark, production, stream, view)
    dev.apply()
    (found,) = dev.diff(view)
    assert (found.verdict, found.equal) == (Verdict.EQUAL, COMPARED + 1)
    assert [*ledger.problems(reversed([*ledger.entries(dev.settings, Tables.of(stream).bronze)]))] == []
    with pytest.raises(LockstepError, match="begins at 2026-11-10 10:04:30 UTC already"):
        dev.apply("2h")
    remove(dev.settings)
    dev.apply(SINCE)
    (found,) = dev.diff(view)
    assert (found.verdict, found.equal) == (Verdict.EQUAL, COMPARED + 1)


def test_no_topic_is_made_for_a_stream_that_production_does_not_have(
    settings: Settings, stream: Contract, view: View, environment: Any
) -> None:
    CONTRACTS[stream.name] = new = replace(stream, topic=f"{stream.topic}_new")
    dev = environment(view)
    assert (
        f"view {view.name}: left out, because there is no topic {new.topic}, and an environment makes none"
        in dev.apply()
    )
    assert offsets_of_existing_topics(settings, [new.topic]) == {}
    (found,) = dev.diff(view)
    assert (found.verdict, "it has no gold in" in found.reason) == (Verdict.NOT_COMPARED, True)


@pytest.mark.slow
def test_a_changed_contract_reads_the_sample_again(
    production: Settings, stream: Contract, view: View, environment: Any
) -> None:
    dev = environment(view)
    dev.apply(SINCE)
    # Without the column, silver's table could not follow the contract.
    CONTRACTS[stream.name] = replace(stream, columns={k: v for k, v in stream.columns.items() if k != "referrer"})
    said = dev.apply()
    assert f"{Tables.of(stream).log}: is computed again, because its contract has changed" in said
    (found,) = dev.diff(view)
    assert (found.verdict, found.equal) == (Verdict.EQUAL, COMPARED)


@pytest.mark.slow
def test_of_a_view_that_needs_all_history_it_is_only_said_that_it_may_differ(
    spark: Any, production: Settings, stream: Contract, environment: Any
) -> None:
    view = Keyed(
        name=f"numbered_{stream.name[-8:]}",
        columns={"event_id": "STRING", "number": "BIGINT"},
        key=("event_id",),
        allowed_lateness=timedelta(seconds=2),
        inputs=(Input(stream.name, "user_id", ("event_id",)),),
        process=numbered,
    )
    VIEWS[view.name] = view
    try:
        roll(spark, production, view)
        dev, whole = environment(view), environment(view)
        dev.apply(SINCE)
        (found,) = dev.diff(view)
        assert (found.verdict, found.changed, found.only_here, found.only_there) == (Verdict.UNKNOWN, 10, 0, 0)
        assert "may depend on any event before it" in found.reason
        assert dev.run("diff")[0] == 0
        whole.apply("earliest")
        (found,) = whole.diff(view)
        assert (found.verdict, found.equal) == (Verdict.EQUAL, 20)
    finally:
        del VIEWS[view.name]


@pytest.fixture
def names(settings: Settings) -> Iterator[tuple[Contract, View]]:
    """The table users, and a view with the newest row of each."""
    suffix = uuid.uuid4().hex[:8]
    users = replace(CONTRACTS["users"], name=f"users_{suffix}", topic=f"users_{suffix}")
    view = Keyed(
        name=f"names_{suffix}",
        columns={"user_id": "STRING", "name": "STRING"},
        key=("user_id",),
        allowed_lateness=timedelta(0),
        inputs=(Input(users.name, "user_id", ("user_id", "name"), time="updated_at"),),
        process=newest_name,
    )
    ensure_topics(settings, {users.name: users})
    CONTRACTS[users.name], VIEWS[view.name] = users, view
    yield users, view
    del CONTRACTS[users.name], VIEWS[view.name]


def test_the_newest_rows_of_a_table_are_compared_at_the_same_offsets(
    spark: Any, settings: Settings, names: tuple[Contract, View], environment: Any
) -> None:
    users, view = names
    produce(settings, users, 1, "u1", "Ada")
    roll(spark, settings, users, view)
    produce(settings, users, 2, "u1", "Grace")
    dev = environment(view)
    # A table's rows may be older than any sample.
    dev.apply("1m")
    (found,) = dev.diff(view)
    assert (found.verdict, found.equal) == (Verdict.EQUAL, 1)
    roll(spark, settings, users, view)
    (found,) = dev.diff(view)
    assert (found.verdict, found.equal) == (Verdict.EQUAL, 1)


def test_the_deletes_of_a_truncate_are_written_to_the_topic_by_production_alone(
    spark: Any, settings: Settings, names: tuple[Contract, View], environment: Any
) -> None:
    users, view = names
    produce(settings, users, 1, "u1", "Ada")
    produce(settings, users, 2)
    before = topic_offsets(settings, users.topic)
    environment(view).apply()
    assert topic_offsets(settings, users.topic) == before
    roll(spark, settings, users)
    assert topic_offsets(settings, users.topic) != before
