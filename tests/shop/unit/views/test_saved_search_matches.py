"""saved_search_matches: the index finds the same as a comparison of every search with every product."""

import re
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import saved_search_matches as oracle
from tests.shop.unit.views.feed import assert_every_way_gives, batch, route
from tests.support.records import at, change_record, event_record, table_records

from shop.views.saved_search_matches import VIEW

END = at(10_000)
WORDS = st.lists(st.sampled_from(["Red", "LAMP", "tea", "cup", "of", "T-Light", "é"]), min_size=1, max_size=3)
TEXTS = WORDS.map(" ".join)


def product(name, description, price, second):
    return {
        "product_id": name,
        "description": description,
        "price": f"{price}.000",
        "updated_at": at(second).isoformat(),
    }


def save(number, user, query, saved, second, delay=0.5):
    return event_record("saved_searches", number, second, delay, user_id=user, query=query, saved=saved)


def keys(stream, row):
    """The index, as the view's SQL has it: all words of a product, and of a search the longest, or the last of the longest."""
    text = row["query"] if stream == "saved_searches" else row["description"]
    words = sorted({word for word in re.split("[^a-z0-9]+", (text or "").lower()) if len(word) >= 3})
    return sorted(words, key=len)[-1:] if stream == "saved_searches" else words


@given(
    st.lists(
        st.builds(product, st.sampled_from("PQ"), st.none() | TEXTS, st.integers(1, 2), st.integers(0, 60)), max_size=8
    ),
    st.lists(st.tuples(st.sampled_from("ab"), TEXTS, st.booleans(), st.integers(0, 60), st.floats(0, 12)), max_size=10),
    st.randoms(use_true_random=False),
)
def test_however_changes_and_searches_interleave_the_rows_are_the_oracles(products, searches, dice: Random):
    records = {
        "products": table_records("products", ("product_id",), products),
        "saved_searches": [save(n, *one) for n, one in enumerate(searches)],
    }
    routed = route(VIEW, keys, records)
    assert_every_way_gives(oracle.rows(records), VIEW, routed, END, dice)


def test_a_search_matches_when_all_its_words_are_in_the_description_until_it_is_removed():
    lamp = product("P1", "RED LAMP, LARGE", 5, 30)
    records = {
        "products": [
            change_record("products", 1, 30, None, lamp),
            change_record("products", 2, 60, lamp, product("P1", "RED LAMP, LARGE", 4, 60)),
        ],
        "saved_searches": [
            save(1, "anna", "red lamp", True, 10),
            save(2, "ben", "lamp large", True, 20),
            save(3, "cleo", "blue lamp", True, 20),
            save(4, "anna", "red lamp", False, 40),
        ],
    }
    rows = batch(VIEW, route(VIEW, keys, records), END)
    assert sorted((row["user_id"], row["version"]) for row in rows) == [("anna", 1), ("ben", 1), ("ben", 2)]


def test_a_product_meets_only_the_searches_of_its_words():
    saved = [save(n, "anna", f"thing{n}", True, 1) for n in range(1000)]
    records = {
        "products": [change_record("products", 1, 30, None, product("P1", "thing7", 5, 30))],
        "saved_searches": saved,
    }
    met = {key for key, rows in route(VIEW, keys, records).items() if any(row["_position"] for row in rows)}
    assert met == {"thing7"}
