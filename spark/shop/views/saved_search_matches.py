"""Saved searches that match a product that is new or has changed: a search matches if all its words are in the description.

The searches are indexed by their longest word, which is rarely a common one. A product goes to each word of its description, and
meets only the searches that are indexed there.
"""

import json
import re
from datetime import datetime, timedelta
from typing import Any

from lockstep.definition import Event, Input, Keyed, subscriptions
from lockstep.definition.states import instant

# Shorter words are not indexed: a search of only such words matches nothing.
_WORDS = "filter(split(lower({}), '[^a-z0-9]+'), word -> length(word) >= 3)"
_LONGEST = f"array_max(transform({_WORDS.format('query')}, word -> struct(length(word) AS size, word))).word"


def words(text: str) -> set[str]:
    """The words of a text, by which it is searched."""
    return set(re.findall(r"[a-z0-9]+", text.lower()))


def process(state: Any, event: Event) -> tuple[Any, list[dict[str, Any]]]:
    """The state is the searches of one word, and the products that have it."""
    state = state or subscriptions.empty() | {"products": {}}
    data = event.data
    if event.stream == "saved_searches":
        subscriptions.switch(state, json.dumps([data["user_id"], data["query"]]), event.time, data["saved"])
        return state, []
    product, previous = data["product_id"], state["products"].pop(data["product_id"], None)
    if data["_deleted"]:
        return state, []
    now = state["products"][product] = [data["description"], data["price"]]
    if now == previous:
        return state, []
    what = {name: data[name] for name in ("product_id", "description", "price")}
    changed = instant(data["updated_at"])
    return state, subscriptions.match(state, changed, what | {"version": data["_lsn"], "changed_at": changed}, _matches)


def on_timer(state: Any, at: datetime) -> tuple[Any, list[dict[str, Any]]]:
    """The searches at this time are known: match them."""
    return subscriptions.on_timer(state, at, _matches)


def _matches(saved: list[str], product: dict[str, Any]) -> list[dict[str, Any]]:
    in_description = words(product["description"])
    searches = (json.loads(search) for search in saved)
    return [{"user_id": user, "query": query} | product for user, query in searches if words(query) <= in_description]


VIEW = Keyed(
    name="saved_search_matches",
    description="Each product that is new or has changed, with each saved search that it matches.",
    inputs=(
        Input(
            "products",
            keys=_WORDS.format("description"),
            columns=("product_id", "description", "price", "updated_at", "_lsn"),
            time="_committed_at",
            where="updated_at IS NOT NULL AND description IS NOT NULL",
        ),
        Input("saved_searches", _LONGEST, ("user_id", "query", "saved")),
    ),
    process=process,
    timer=subscriptions.timer,
    on_timer=on_timer,
    columns={
        "user_id": "STRING",
        "query": "STRING",
        "product_id": "STRING",
        "version": "BIGINT",
        "changed_at": "TIMESTAMP",
        "description": "STRING",
        "price": "DECIMAL(12,3)",
    },
    column_descriptions={
        "user_id": "The customer who had saved the search.",
        "query": "The words of the search. All of them are in the name of the product.",
        "version": "The change of the product: its position (LSN) in the log of the shop's database.",
        "changed_at": "When the product was added or changed (UTC).",
    },
    key=("user_id", "query", "product_id", "version"),
    allowed_lateness=timedelta(seconds=10),
)
