"""Saved searches against products: every version of every product against every search, word by word, with no index."""

import string
from collections.abc import Mapping
from typing import Any

from tests.shop.oracles.changes import history, money
from tests.shop.oracles.record import Record, accepted, on_time, parsed


def rows(records: Mapping[str, list[Record]]) -> list[dict[str, Any]]:
    """A row for each product that came in or changed, and each search saved just before that matches it."""
    values = [record.value or {} for record in on_time(accepted(records["saved_searches"]), 10)]
    saved = sorted((parsed(v["event_time"]), v["event_id"], (v["user_id"], v["query"]), v["saved"]) for v in values)
    searches = sorted({search for _, _, search, _ in saved})
    stands: dict[str, Any] = {}
    found = []
    for change in history(records["products"], ("product_id",)):
        row = change.after or change.before or {}
        now = (row["description"], money(row["price"])) if change.after and row["description"] else None
        before, stands[row["product_id"]] = stands.get(row["product_id"]), now
        if now is None:
            continue
        at = parsed(row["updated_at"])
        for user, query in searches:
            index = longest(query)
            # What was there with the word before, and is the same, says nothing new.
            if index is None or index not in words(now[0]) or before == now:
                continue
            turns = [on for time, _, search, on in saved if search == (user, query) and time < at]
            if turns and turns[-1] and words(query) <= words(now[0]):
                what = {"user_id": user, "query": query, "product_id": row["product_id"], "version": change.place[1]}
                found.append(what | {"changed_at": at, "description": now[0], "price": now[1]})
    return found


def words(text: str) -> set[str]:
    """The words of a text: runs of letters and digits of ASCII, in small letters."""
    kept = set(string.ascii_lowercase + string.digits)
    return set("".join(letter if letter in kept else " " for letter in text.lower()).split())


def longest(query: str) -> str | None:
    """The word that a search is known by: of three letters or more, the longest, and of these the last in the alphabet."""
    return max((word for word in words(query) if len(word) >= 3), key=lambda word: (len(word), word), default=None)
