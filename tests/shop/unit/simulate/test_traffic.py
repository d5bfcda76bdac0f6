"""The traffic is the same for the same seed, arrives in order, and keeps its contracts."""

import itertools
import json
from collections import Counter, defaultdict
from datetime import UTC, datetime, timedelta
from typing import Any

import pandas as pd
import pytest

from lockstep.commands.registry import AGGREGATES
from lockstep.contracts import CONTRACTS
from shop.simulate import retail
from shop.simulate.disturb import Record
from shop.simulate.plan import Amounts, Plan
from shop.simulate.retail import Retail
from shop.simulate.simulation import slices
from shop.simulate.traffic import Traffic

CLEAN = {"duplicates": 0.0, "late": 0.0, "poisoned": 0.0}


def simulated(plan: Plan, shop: Retail, width: timedelta = timedelta(hours=1)) -> list[Record]:
    traffic = Traffic(plan, shop)
    return [record for start, end in slices(plan.start, plan.end, width) for record in traffic.between(start, end)]


def with_amounts(plan: Plan, **amounts: float) -> Plan:
    return plan.model_copy(update={"amounts": Amounts.model_validate(amounts)})


def millis(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


@pytest.fixture(scope="module")
def records(plan: Plan, shop: Retail) -> list[Record]:
    return simulated(plan, shop)


@pytest.fixture(scope="module")
def clean(plan: Plan, shop: Retail) -> dict[str, list[dict[str, Any]]]:
    """The payloads per topic of a simulation without disturbances."""
    by_topic = defaultdict(list)
    for record in simulated(with_amounts(plan, **CLEAN), shop):
        assert record.value is not None
        by_topic[record.topic].append(json.loads(record.value))
    return by_topic


def test_the_same_seed_gives_the_same_bytes(plan: Plan, shop: Retail, records: list[Record]) -> None:
    assert simulated(plan, shop) == records


def test_another_seed_gives_other_events(plan: Plan, shop: Retail, records: list[Record]) -> None:
    assert not {r.value for r in simulated(with_amounts(plan, seed=8), shop)} & {r.value for r in records if r.value}


@pytest.mark.parametrize("width", [timedelta(minutes=17), timedelta(days=1)])
def test_the_width_of_the_slices_changes_nothing(
    plan: Plan, shop: Retail, records: list[Record], width: timedelta
) -> None:
    assert simulated(plan, shop, width) == records


def test_records_are_in_the_order_of_their_arrival(records: list[Record]) -> None:
    assert all(before.arrival <= after.arrival for before, after in itertools.pairwise(records))


def test_nothing_arrives_after_the_end(plan: Plan, records: list[Record]) -> None:
    assert records[-1].arrival < plan.end.timestamp() * 1000


def test_every_topic_has_traffic(records: list[Record]) -> None:
    # Of aggregates, processors alone write what has happened.
    decided = {aggregate.topic("events") for aggregate in AGGREGATES.values()}
    assert {r.topic for r in records} == {c.topic for c in CONTRACTS.values() if c.kind == "events"} - decided


def test_payloads_have_the_columns_of_their_contract_and_key(clean: dict[str, list[dict[str, Any]]]) -> None:
    for topic, payloads in clean.items():
        contract = CONTRACTS[topic]
        columns = list(contract.columns)
        assert all(list(payload) == columns for payload in payloads)
        assert all(payload[name] is not None for payload in payloads for name in contract.required)


def test_the_key_is_the_contracts_column(plan: Plan, shop: Retail) -> None:
    for record in simulated(with_amounts(plan, **CLEAN), shop):
        assert record.key is not None
        assert record.value is not None
        assert record.key.decode() == json.loads(record.value)[CONTRACTS[record.topic].key[0]]


def test_a_duplicate_is_the_same_bytes_later_and_they_have_their_share(records: list[Record]) -> None:
    seen: dict[bytes, int] = {}
    repeated = 0
    for record in records:
        if record.value:
            repeated += record.value in seen
            assert record.arrival - seen.setdefault(record.value, record.arrival) <= 60_000
    assert repeated / len(records) == pytest.approx(0.05 / 1.05, abs=0.01)


def test_late_events_have_their_share_and_the_others_arrive_within_ten_seconds(plan: Plan, shop: Retail) -> None:
    delays = [
        record.arrival - millis(json.loads(record.value or b"")["event_time"])
        for record in simulated(with_amounts(plan, duplicates=0, poisoned=0), shop)
    ]
    # Events of the very last seconds arrive at the end of the simulation.
    prompt, late = [d for d in delays if d < 10_000], [d for d in delays if d >= 10_000]
    assert len(late) / len(delays) == pytest.approx(0.01, abs=0.004)
    assert all(5 * 60_000 <= delay <= 3 * 3_600_000 for delay in late)
    assert sum(delay < 3_000 for delay in prompt) / len(prompt) > 0.99


def test_some_events_overtake_others(plan: Plan, shop: Retail) -> None:
    times = [
        json.loads(record.value or b"")["event_time"]
        for record in simulated(with_amounts(plan, **CLEAN), shop)
        if record.topic == "page_views"
    ]
    assert any(before > after for before, after in itertools.pairwise(times))


def test_every_paid_order_is_in_the_shop_with_its_value(
    plan: Plan, shop: Retail, clean: dict[str, list[dict[str, Any]]]
) -> None:
    orders, lines = shop.between(plan.start, plan.end)
    values = (lines["unit_price"] * lines["quantity"]).groupby(lines["order_id"]).sum()
    known = orders[orders["user_id"].notna() & (orders["kind"] == "sale")].set_index("order_id")
    paid = {payment["order_id"]: payment for payment in clean["payments"]}
    assert set(paid) == set(known.index[values[known.index] > 0])
    for order_id, payment in paid.items():
        assert float(payment["amount"]) == pytest.approx(values[order_id], abs=0.0005)
        assert payment["user_id"] == known.loc[order_id, "user_id"]
        assert payment["country"] == known.loc[order_id, "country"]


def test_the_customer_of_a_paid_order_looked_around_before(clean: dict[str, list[dict[str, Any]]]) -> None:
    first_seen: dict[str, str] = {}
    pages = defaultdict(set)
    for view in clean["page_views"]:
        first_seen[view["session_id"]] = min(first_seen.get(view["session_id"], "9"), view["event_time"])
        pages[view["session_id"]].add(view["page"])
    logged_in = {login["session_id"] for login in clean["logins"] if login["success"]}
    for payment in clean["payments"]:
        assert first_seen[payment["session_id"]] < payment["event_time"]
        assert {"/", "/cart", "/checkout"} <= pages[payment["session_id"]]
        assert payment["session_id"] in logged_in


def test_now_and_then_a_login_from_abroad_comes_just_before_a_payment(raw: pd.DataFrame) -> None:
    plan = Plan.make(raw, 14, Amounts.model_validate(CLEAN), datetime(2026, 11, 21, tzinfo=UTC).date())
    by_user = defaultdict(list)
    payments = []
    for record in simulated(plan, retail.tables(raw, plan.shift_weeks), timedelta(days=1)):
        payload = json.loads(record.value or b"")
        if record.topic == "logins" and payload["success"]:
            by_user[payload["user_id"]].append((millis(payload["event_time"]), payload["country"]))
        if record.topic == "payments":
            payments.append(payload)
    suspicious = [
        payment
        for payment in payments
        if any(
            country != payment["country"] and 0 < millis(payment["event_time"]) - at < 300_000
            for at, country in by_user[payment["user_id"]]
        )
    ]
    assert 0.003 < len(suspicious) / len(payments) < 0.03


def test_many_visitors_buy_nothing(clean: dict[str, list[dict[str, Any]]]) -> None:
    visits = {view["session_id"] for view in clean["page_views"]}
    assert 0.3 < len(clean["payments"]) / len(visits) < 0.6


def test_a_click_on_an_advertisement_follows_it_within_ten_minutes(clean: dict[str, list[dict[str, Any]]]) -> None:
    shown = defaultdict(list)
    for impression in clean["impressions"]:
        shown[impression["session_id"], impression["ad_id"]].append(millis(impression["event_time"]))
    clicks = [click for click in clean["clicks"] if click["ad_id"]]
    assert clicks
    for click in clicks:
        times = shown[click["session_id"], click["ad_id"]]
        assert any(0 <= millis(click["event_time"]) - shown_at <= 600_000 for shown_at in times)


def test_a_click_on_a_result_follows_its_search(clean: dict[str, list[dict[str, Any]]]) -> None:
    searched = {(search["session_id"], search["query"]) for search in clean["searches"]}
    clicks = [click for click in clean["clicks"] if click["query"]]
    assert clicks
    assert all((click["session_id"], click["query"]) in searched and click["position"] >= 1 for click in clicks)


def test_who_follows_a_product_has_seen_it_and_who_saves_a_search_has_made_it(
    clean: dict[str, list[dict[str, Any]]],
) -> None:
    seen = {(view["user_id"], view["page"]) for view in clean["page_views"]}
    searched = {(search["user_id"], search["query"]) for search in clean["searches"]}
    assert {(one["user_id"], f"/product/{one['product_id']}") for one in clean["follows"]} <= seen
    assert {(one["user_id"], one["query"]) for one in clean["saved_searches"]} <= searched
    for payloads, switch in ((clean["follows"], "follows"), (clean["saved_searches"], "saved")):
        off = [one for one in payloads if not one[switch]]
        assert 0.1 < len(off) / len(payloads) < 0.3


def test_requests_mirror_page_views(clean: dict[str, list[dict[str, Any]]]) -> None:
    viewed = Counter("/" + view["page"].split("/")[1] for view in clean["page_views"])
    assert Counter(request["endpoint"] for request in clean["requests"]) == viewed


def test_sensors_report_regularly(plan: Plan, clean: dict[str, list[dict[str, Any]]]) -> None:
    times = pd.DataFrame(clean["sensors"]).groupby("sensor_id")["event_time"].agg(sorted)
    assert len(times) == 4
    for reported in times:
        gaps = pd.to_datetime(pd.Series(reported)).diff().dropna()
        assert (gaps == timedelta(seconds=1800)).all()
        assert datetime.fromisoformat(reported[0]) - plan.start < timedelta(seconds=1800)


def test_more_sessions_make_more_traffic(plan: Plan, shop: Retail, clean: dict[str, list[dict[str, Any]]]) -> None:
    busy = simulated(with_amounts(plan, sessions_per_order=6, **CLEAN), shop)
    assert sum(record.topic == "page_views" for record in busy) > 1.8 * len(clean["page_views"])


def test_the_demo_is_between_sixty_and_ninety_thousand_events(raw: pd.DataFrame) -> None:
    plan = Plan.make(raw, 28, Amounts(), datetime(2026, 11, 21, tzinfo=UTC).date())
    total = len(simulated(plan, retail.tables(raw, plan.shift_weeks), timedelta(days=1)))
    assert 60_000 <= total <= 90_000
