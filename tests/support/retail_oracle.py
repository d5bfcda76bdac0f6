"""Independent answers: plain Python and pandas over what the producer saw acknowledged. No Spark, no code of Lockstep."""

import base64
import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import pandas as pd

LATENESS = timedelta(seconds=5)
AHEAD = timedelta(minutes=5)
REMEMBERED = timedelta(days=1)


def records(home: Path, topic: str) -> list[dict]:
    """What the broker acknowledged, by partition and offset."""
    lines = (home / "ground_truth" / f"{topic}.jsonl").read_text().splitlines()
    return sorted((json.loads(line) for line in lines), key=lambda r: (r["partition"], r["offset"]))


def page_views(home: Path) -> tuple[Counter, dict[str, int]]:
    """Views by (minute, page), and what became of every record that the simulator sent."""
    return count_page_views(records(home, "page_views"))


def count_page_views(sent: list[dict]) -> tuple[Counter, dict[str, int]]:
    """Views by (minute, page), and how many records had which outcome; the rules as the documentation has them.

    Args:
        sent: what the broker acknowledged, by partition and offset.
    """
    views: Counter = Counter()
    outcomes: Counter = Counter()
    for _, outcome, event, arrival in _outcomes(sent):
        outcomes[outcome] += 1
        if outcome == "silver":
            on_time = arrival - event["at"] <= LATENESS
            outcomes["counted" if on_time else "ignored"] += 1
            if on_time:
                views[event["at"].replace(second=0, microsecond=0), event["page"]] += 1
    return views, dict(outcomes)


def silver_page_views(sent: list[dict]) -> dict[tuple[int, int], dict]:
    """By partition and offset, the payload of every record that belongs into silver."""
    return {
        (record["partition"], record["offset"]): event
        for record, outcome, event, _ in _outcomes(sent)
        if outcome == "silver"
    }


def numbered_page_views(sent: list[dict]) -> list[tuple[str, int]]:
    """Every event that belongs into silver, and which one of its user it is, from 1, by time and id."""
    counts: Counter = Counter()
    numbers = []
    for event in sorted(silver_page_views(sent).values(), key=lambda event: (event["at"], event["event_id"])):
        counts[event["user_id"]] += 1
        numbers.append((event["event_id"], counts[event["user_id"]]))
    return sorted(numbers)


def _outcomes(sent: list[dict]) -> Iterator[tuple[dict, str, dict, datetime]]:
    first_arrival: dict[str, datetime] = {}
    for record in sent:
        arrival = datetime.fromtimestamp(record["arrival"] / 1000, UTC)
        outcome, event = _outcome(record, arrival, first_arrival)
        yield record, outcome, event, arrival


def _outcome(record: dict, arrival: datetime, first_arrival: dict[str, datetime]) -> tuple[str, dict]:
    if record["is_heartbeat"]:
        return "markers", {}
    event = _read(record["value"])
    if event is None or event["at"] - arrival > AHEAD:
        return "quarantined", {}
    first = first_arrival.get(event["event_id"])
    if first is not None and arrival - first <= REMEMBERED:
        return "duplicates", event
    first_arrival[event["event_id"]] = arrival
    return "silver", event


def _read(value: str | None) -> dict | None:
    try:
        event = json.loads(base64.b64decode(value or ""))
        texts = [event[name] for name in ("event_id", "user_id", "page")]
        if not all(isinstance(text, str) for text in texts):
            return None
        return event | {"at": datetime.fromisoformat(event["event_time"])}
    except (ValueError, KeyError, TypeError):
        return None


def daily_orders(parquet: Path, days: int, today: date) -> pd.DataFrame:
    """Orders, revenue and returns by day and country, from the original file alone, for the whole days of the play."""
    raw = pd.read_parquet(parquet)
    last = raw["InvoiceDate"].max()
    weeks = (today - timedelta(days=1) - last.date()) // timedelta(weeks=1)
    sold = raw[raw["InvoiceDate"] >= last - timedelta(days=days)].copy()
    sold["InvoiceDate"] += timedelta(weeks=weeks)
    return orders_by_day(sold)


def orders_by_day(raw: pd.DataFrame) -> pd.DataFrame:
    """Orders, revenue and returns by day and country, from rows of the original file."""
    table = _by_day(_sold(raw), "Country")
    return table.rename(columns={"Country": "country"}).sort_values(["day", "country"], ignore_index=True)


def customers_by_day(raw: pd.DataFrame) -> pd.DataFrame:
    """The same by day and customer, without the orders of unknown ones."""
    known = _sold(raw).dropna(subset="CustomerID").astype({"CustomerID": str})
    table = _by_day(known, "CustomerID")
    return table.rename(columns={"CustomerID": "user_id"}).sort_values(["day", "user_id"], ignore_index=True)


def customers(raw: pd.DataFrame) -> pd.DataFrame:
    """What each known customer has ordered and returned, and the days of the first and the last sale."""
    days = customers_by_day(raw)
    by_user = days.groupby("user_id")
    table = by_user[["orders", "revenue", "returns"]].sum()
    bought = days[days["orders"] > 0].groupby("user_id")["day"]
    table.insert(0, "first_order_on", bought.min())
    table.insert(1, "last_order_on", bought.max())
    table["lifetime_value"] = table["revenue"] - table["returns"]
    return table.reset_index().sort_values("user_id", ignore_index=True)


def cohorts(raw: pd.DataFrame) -> pd.DataFrame:
    """By month of the first sale, and by month since: how many customers bought, and what these months came to."""
    days = customers_by_day(raw)
    first = days[days["orders"] > 0].groupby("user_id")["day"].min()
    days["first"] = days["user_id"].map(first)
    days = days.dropna(subset="first")
    months = [[day.year * 12 + day.month - 1 for day in days[name]] for name in ("day", "first")]
    days["month_no"] = [month - cohort for month, cohort in zip(*months, strict=True)]
    days["cohort"] = [day.replace(day=1) for day in days["first"]]
    days = days[days["month_no"] >= 0]
    keys = ["cohort", "month_no"]
    sums = days.groupby(keys)[["orders", "revenue", "returns"]].sum()
    sums.insert(0, "customers", days[days["orders"] > 0].groupby(keys)["user_id"].nunique())
    return sums.fillna({"customers": 0}).reset_index().sort_values(keys, ignore_index=True)


def _sold(raw: pd.DataFrame) -> pd.DataFrame:
    sold = raw.copy()
    sold["day"] = sold["InvoiceDate"].dt.date
    # In thousandths of a pound, as whole numbers: sums of floats would not be exact.
    sold["amount"] = (sold["UnitPrice"] * 1000).round().astype("int64") * sold["Quantity"]
    return sold


def _by_day(sold: pd.DataFrame, by: str) -> pd.DataFrame:
    prefix = sold["InvoiceNo"].str[0]
    sales, returned = sold[~prefix.isin(["C", "A"])], sold[prefix == "C"]
    keys = ["day", by]
    table = pd.DataFrame(
        {
            "orders": sales.groupby(keys)["InvoiceNo"].nunique(),
            "revenue": sales.groupby(keys)["amount"].sum(),
            "returns": -returned.groupby(keys)["amount"].sum(),
        }
    ).fillna(0)
    table = table.reset_index()
    table["orders"] = table["orders"].astype(int)
    for name in ("revenue", "returns"):
        table[name] = [Decimal(int(value)).scaleb(-3) for value in table[name]]
    return table
