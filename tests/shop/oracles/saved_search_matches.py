"""Saved searches that match products: compares every version of every product with every search, without an index."""

import string
from collections.abc import Mapping
from typing import Any

from tests.shop.oracles.changes import history, money
from tests.shop.oracles.record import Record, accepted, on_time, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """A row for each product that is new or has changed, and each search that was saved at that time and matches it."""
    values = [record.value or {} for record in on_time(accepted(records["saved_searches"]), 10)]
    saved = sorted((parsed(v["event_time"]), v["event_id"], (v["user_id"], v["query"]), v["saved"]) for v in values)
    searches = sorted({search for _, _, search, _ in saved})
    last: dict[str, Any] = {}
    result = []
    for change in history(records["products"], ("product_id",)):
        row = change.after or change.before or {}
        now = (row["description"], money(row["price"])) if change.after and row["description"] else None
        before, last[row["product_id"]] = last.get(row["product_id"]), now
        # A change of other columns is not news.
        if now is None or before == now:
            continue
        at = parsed(row["updated_at"])
        for user, query in searches:
            switches = [on for time, _, search, on in saved if search == (user, query) and time < at]
            if switches and switches[-1] and matches(query, now[0]):
                what = {"user_id": user, "query": query, "product_id": row["product_id"], "version": change.place[1]}
                result.append(what | {"changed_at": at, "description": now[0], "price": now[1]})
    return result


def matches(query: str, description: str) -> bool:
    """Whether all words of the query are in the description. A query of words with one or two letters matches nothing."""
    wanted = words(query)
    return wanted <= words(description) and any(len(word) >= 3 for word in wanted)


def words(text: str) -> set[str]:
    """The words of a text: runs of ASCII letters and digits, in lower case."""
    allowed = set(string.ascii_lowercase + string.digits)
    return set("".join(letter if letter in allowed else " " for letter in text.lower()).split())
