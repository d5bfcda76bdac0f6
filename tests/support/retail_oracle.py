"""Independent answers: plain Python and pandas over what the producer saw acknowledged. No Spark, no code of Lockstep."""

import base64
import json
from collections import Counter
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
    return judge_page_views(records(home, "page_views"))


def judge_page_views(sent: list[dict]) -> tuple[Counter, dict[str, int]]:
    """Views by (minute, page), and what became of every record (by partition and offset), by our own reading of the rules."""
    views: Counter = Counter()
    outcomes: Counter = Counter()
    kept: dict[str, datetime] = {}
    for record in sent:
        outcome, event, arrival = _judge(record, kept)
        outcomes[outcome] += 1
        if outcome == "silver":
            on_time = arrival - event["at"] <= LATENESS
            outcomes["counted" if on_time else "ignored"] += 1
            if on_time:
                views[event["at"].replace(second=0, microsecond=0), event["page"]] += 1
    return views, dict(outcomes)


def _judge(record: dict, kept: dict[str, datetime]) -> tuple[str, dict, datetime]:
    arrival = datetime.fromtimestamp(record["arrival"] / 1000, UTC)
    if record["is_heartbeat"]:
        return "markers", {}, arrival
    event = _read(record["value"])
    if event is None or event["at"] - arrival > AHEAD:
        return "quarantined", {}, arrival
    first = kept.get(event["event_id"])
    if first is not None and arrival - first <= REMEMBERED:
        return "duplicates", event, arrival
    kept[event["event_id"]] = arrival
    return "silver", event, arrival


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
    sold["day"] = (sold["InvoiceDate"] + timedelta(weeks=weeks)).dt.date
    # In thousandths of a pound, as whole numbers: sums of floats would not be exact.
    sold["amount"] = (sold["UnitPrice"] * 1000).round().astype("int64") * sold["Quantity"]
    prefix = sold["InvoiceNo"].str[0]
    sales, returned = sold[~prefix.isin(["C", "A"])], sold[prefix == "C"]
    keys = ["day", "Country"]
    table = pd.DataFrame(
        {
            "orders": sales.groupby(keys)["InvoiceNo"].nunique(),
            "revenue": sales.groupby(keys)["amount"].sum(),
            "returns": -returned.groupby(keys)["amount"].sum(),
        }
    ).fillna(0)
    table = table.reset_index().rename(columns={"Country": "country"})
    table["orders"] = table["orders"].astype(int)
    for name in ("revenue", "returns"):
        table[name] = [Decimal(int(value)).scaleb(-3) for value in table[name]]
    return table.sort_values(["day", "country"], ignore_index=True)
