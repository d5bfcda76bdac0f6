"""A simulation that was killed and went on: database, log and ground truth are as if it had not been killed."""

import itertools
import json
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import kafka
import pandas as pd
import pytest
from psycopg2.extensions import cursor

from lockstep.commands.registry import AGGREGATES
from lockstep.contracts import CONTRACTS
from lockstep.kafka_clients import KafkaUnavailable, admin, consumer, ensure_topics
from lockstep.settings import Settings
from shop.simulate import ground_truth, retail
from shop.simulate.disturb import Record
from shop.simulate.ground_truth import GroundTruth, TruthMismatch
from shop.simulate.producer import BulkSender, KafkaPythonSender, NotAcknowledged
from shop.simulate.shop import ShopUnavailable, open_shop
from shop.simulate.simulation import EVENT_TOPICS, HEARTBEAT_AFTER, OtherSimulation, RunStatus, run_simulation
from shop.simulate.traffic import Traffic

PARTITIONS = {contract.topic: contract.partitions for contract in CONTRACTS.values()}
every_topic = pytest.mark.parametrize("topic", EVENT_TOPICS)


@pytest.fixture(scope="module")
def history(shop: Settings, second: RunStatus) -> retail.Retail:
    return retail.tables(retail.read(), second.plan.shift_weeks)


def log_of(settings: Settings, topic: str) -> list[kafka.consumer.fetcher.ConsumerRecord]:
    """All records of a topic, in the order of partition and offset."""
    client = consumer(settings)
    places = [kafka.TopicPartition(topic, number) for number in sorted(client.partitions_for_topic(topic))]
    client.assign(places)
    client.seek_to_beginning()
    ends = client.end_offsets(places)
    found = []
    while any(client.position(place) < ends[place] for place in places):
        found += [record for batch in client.poll(timeout_ms=500).values() for record in batch]
    client.close()
    return sorted(found, key=lambda record: (record.partition, record.offset))


def test_it_was_killed_in_the_middle(killed_at: float, second: RunStatus) -> None:
    assert 0.3 < killed_at < 0.95
    assert second.finished
    assert second.order_lines > 0


def test_every_order_line_is_in_the_database_once(
    shop: Settings, second: RunStatus, sql: cursor, history: retail.Retail
) -> None:
    orders, lines = history.between(second.plan.start, second.plan.end)
    sql.execute("SELECT count(*) FROM public.orders")
    assert sql.fetchone() == (len(orders),)
    sql.execute("SELECT count(*), sum(quantity * unit_price) FROM public.order_lines")
    exact = sum(Decimal(f"{p:.3f}") * q for p, q in zip(lines["unit_price"], lines["quantity"], strict=True))
    assert sql.fetchone() == (len(lines), exact)


def test_orders_keep_country_kind_time_and_the_missing_customer(
    shop: Settings, second: RunStatus, sql: cursor, history: retail.Retail
) -> None:
    orders, _ = history.between(second.plan.start, second.plan.end)
    sql.execute("SELECT order_id, user_id, country, kind, ordered_at FROM public.orders")
    stored = pd.DataFrame(sql.fetchall(), columns=list(orders)).set_index("order_id")
    expected = orders.set_index("order_id").astype({"user_id": object})
    expected["user_id"] = expected["user_id"].where(expected["user_id"].notna(), None)
    stored["ordered_at"] = pd.to_datetime(stored["ordered_at"], utc=True)
    assert stored.sort_index().to_dict() == expected.sort_index().to_dict()
    assert stored["user_id"].isna().any()


def test_products_stock_and_customers_are_there_and_change(shop: Settings, sql: cursor, history: retail.Retail) -> None:
    sql.execute("SELECT count(*) FROM public.products JOIN public.inventory USING (product_id)")
    assert sql.fetchone() == (len(history.products),)
    sql.execute("SELECT count(*), count(*) FILTER (WHERE updated_at > created_at) FROM public.users")
    count, changed = sql.fetchone() or (0, 0)
    assert count == len(history.users)
    assert changed >= 5


def test_captured_tables_show_the_whole_old_row(sql: cursor) -> None:
    names = [contract.name for contract in CONTRACTS.values() if contract.kind == "changes"]
    sql.execute("SELECT relname FROM pg_class WHERE relreplident = 'f' AND relnamespace = 'public'::regnamespace")
    assert set(names) <= {row[0] for row in sql.fetchall()}


@every_topic
def test_the_ground_truth_is_the_log_byte_by_byte(shop: Settings, topic: str) -> None:
    truth = ground_truth.read(shop, topic)
    recorded = [
        (row.partition, row.offset, row.key, row.value, row.arrival.value // 1_000_000, row.is_heartbeat)
        for row in truth.itertuples(index=False)
    ]
    log = [
        (r.partition, r.offset, r.key.decode() if r.key else None, r.value, r.timestamp, bool(r.headers))
        for r in log_of(shop, topic)
    ]
    assert recorded == log


@every_topic
def test_all_the_traffic_of_the_plan_arrived(
    shop: Settings, second: RunStatus, history: retail.Retail, topic: str
) -> None:
    plan = second.plan
    traffic = Traffic(plan, history)
    days = pd.date_range(plan.start.date(), plan.end.date(), tz="UTC").to_pydatetime()
    moments = [plan.start, *days[1:]]
    planned = {
        (record.value, record.arrival)
        for start, end in itertools.pairwise(moments)
        for record in traffic.between(start, end)
        if record.topic == topic
    }
    arrived = {(record.value, record.timestamp) for record in log_of(shop, topic) if record.key}
    assert arrived == planned


@every_topic
def test_each_partition_ends_with_one_heartbeat_past_all_arrivals(
    shop: Settings, second: RunStatus, topic: str
) -> None:
    truth = ground_truth.read(shop, topic)
    after = pd.Timestamp(second.plan.end + HEARTBEAT_AFTER)
    for number in range(PARTITIONS[topic]):
        records = truth[truth["partition"] == number]
        assert records["is_heartbeat"].tolist() == [False] * (len(records) - 1) + [True]
        assert records["arrival"].iloc[-1] == after
        assert (records["arrival"].iloc[:-1] < second.plan.end).all()


@every_topic
def test_a_key_stays_on_its_partition_whichever_client_sent_it(shop: Settings, topic: str) -> None:
    truth = ground_truth.read(shop, topic).dropna(subset="key")
    assert (truth.groupby("key")["partition"].nunique() == 1).all()


def test_partitions_never_drift_apart_by_more_than_a_slice(shop: Settings) -> None:
    for topic in {*EVENT_TOPICS} - {aggregate.topic("events") for aggregate in AGGREGATES.values()}:
        truth = ground_truth.read(shop, topic)
        back = truth[~truth["is_heartbeat"]].groupby("partition")["arrival"].diff().min()
        # Within a partition only the slice that was sent again goes back in time.
        assert back > -pd.Timedelta(hours=1)


def test_topics_have_their_partitions_and_keep_old_records(shop: Settings) -> None:
    client = admin(shop)
    found = {topic["name"]: len(topic["partitions"]) for topic in client.describe_topics(EVENT_TOPICS)}
    client.close()
    assert found == {topic: PARTITIONS[topic] for topic in EVENT_TOPICS}
    assert ensure_topics(shop) == []


def test_after_the_end_a_run_adds_nothing(shop: Settings) -> None:
    before = {topic: len(log_of(shop, topic)) for topic in EVENT_TOPICS}
    again = list(run_simulation(shop, {}, KafkaPythonSender))
    assert [(one.finished, one.order_lines, one.records.total()) for one in again] == [(True, 0, 0)]
    assert {topic: len(log_of(shop, topic)) for topic in EVENT_TOPICS} == before


@pytest.mark.parametrize("other", [{"seed": 8}, {"days": 28}, {"days": None}, {"late": 0.5}])
def test_another_simulation_in_the_same_shop_is_refused(shop: Settings, other: dict[str, float | None]) -> None:
    with pytest.raises(OtherSimulation, match=f"{next(iter(other))}=.*lockstep reset"):
        list(run_simulation(shop, other, KafkaPythonSender))


def test_two_simulators_at_once_are_refused(shop: Settings) -> None:
    with open_shop(shop), pytest.raises(ShopUnavailable, match="another simulator"):
        list(run_simulation(shop, {}, KafkaPythonSender))


def test_a_database_that_is_not_there_is_named(shop: Settings) -> None:
    nowhere = shop.model_copy(update={"postgres_port": 1})
    with pytest.raises(ShopUnavailable, match=r"(?s):1 does not answer.*lockstep up"):
        list(run_simulation(nowhere, {}, KafkaPythonSender))


def test_a_torn_ground_truth_is_repaired_from_the_log(shop: Settings, truth: Path) -> None:
    path = truth / "clicks.jsonl"
    whole = ground_truth.read(shop, "clicks")
    text = path.read_bytes()
    path.write_bytes(text[: len(text) // 2])
    assert GroundTruth(shop, EVENT_TOPICS).recovered > 0
    pd.testing.assert_frame_equal(ground_truth.read(shop, "clicks"), whole)
    assert GroundTruth(shop, EVENT_TOPICS).recovered == 0


def test_a_ground_truth_of_another_cluster_is_refused(shop: Settings, truth: Path) -> None:
    path = truth / "logins.jsonl"
    text = path.read_text()
    path.write_text(text + json.dumps(json.loads(text.splitlines()[0]) | {"offset": 10_000_000}) + "\n")
    with pytest.raises(TruthMismatch, match=r"logins\.jsonl knows offset 10000000"):
        GroundTruth(shop, ["logins"])
    path.write_text(text)


def test_a_batch_that_the_broker_has_twice_is_in_the_ground_truth_twice(shop: Settings) -> None:
    ensure_topics(shop, {"scratch": replace(CONTRACTS["clicks"], topic="scratch")})
    truth = GroundTruth(shop, ["scratch"])
    batch = [Record("scratch", b"1", b"%d" % number, 1_790_000_000_000) for number in range(3)]
    with closing(BulkSender(shop)) as sender:
        sender.send(batch)
        known_to_the_client = sender.send(batch)
    assert [record.value for record in truth.add(known_to_the_client)] == [b"0", b"1", b"2"] * 2
    assert GroundTruth(shop, ["scratch"]).recovered == 0


@pytest.mark.parametrize("client", [KafkaPythonSender, BulkSender])
def test_a_record_that_the_broker_refuses_is_an_error(
    shop: Settings, client: type[KafkaPythonSender | BulkSender]
) -> None:
    too_large = Record("clicks", b"1", b"x" * 2_000_000, 1_790_000_000_000)
    sender = client(shop)
    with pytest.raises(NotAcknowledged, match="lockstep simulate"):
        sender.send([too_large])
    sender.close()


def test_a_broker_that_is_not_there_is_named(shop: Settings) -> None:
    nowhere = shop.model_copy(update={"kafka": "127.0.0.1:1"})
    with pytest.raises(KafkaUnavailable, match=r"127\.0\.0\.1:1 does not answer.*lockstep up kafka"):
        ensure_topics(nowhere)
