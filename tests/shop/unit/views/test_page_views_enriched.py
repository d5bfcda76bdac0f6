"""page_views_enriched: each view has the user as of its time, whenever the changes of the user arrive."""

import itertools
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import page_views_enriched as oracle
from tests.shop.oracles.tokens import token
from tests.shop.unit.views.feed import LiveMachine, bag, batch, in_steps, route, shuffled
from tests.support.records import at, change_record, event_record, table_records

from shop.views.page_views_enriched import VIEW

END = at(10_000)
USERS = st.sampled_from(["u1", "u2"])
CUSTOMERS = st.builds(
    # Valid from any time: changes may come in another order than they became valid.
    lambda user, age, second: {"user_id": user, "name": f"N{age}", "age": age, "updated_at": at(second).isoformat()},
    USERS,
    st.integers(18, 90),
    st.integers(0, 100),
)


def keys(stream, row):
    return [row["user_id"]]


@given(
    st.lists(CUSTOMERS, max_size=10),
    st.lists(st.tuples(USERS, st.integers(0, 120), st.floats(0, 12)), max_size=15),
    st.randoms(use_true_random=False),
)
def test_however_changes_and_views_interleave_the_rows_are_the_oracles(customers, views, dice: Random):
    records = {
        "users": table_records("users", ("user_id",), customers),
        "page_views": [
            event_record("page_views", n, second, delay, user_id=user, page="/")
            for n, (user, second, delay) in enumerate(views)
        ],
    }
    routed = route(VIEW, keys, records, token)
    expected = bag(oracle.rows(records))
    assert bag(batch(VIEW, routed, END)) == expected
    assert bag(shuffled(VIEW, routed, END, dice)) == expected
    assert bag(in_steps(VIEW, routed, END, dice)) == expected


def user(age, second):
    return {"user_id": "123", "name": "Alice", "age": age, "updated_at": at(second).isoformat()}


def routed_of(*records):
    return route(VIEW, keys, {name: [r for r in records if r.stream == name] for name in ("users", "page_views")})


def test_enrichment_as_of():
    """At 10:00 the user is 30, at 10:03 becomes 31; views at 10:00 and 10:05."""
    first = change_record("users", 7, 0, None, user(30, 0))
    second = change_record("users", 9, 180, user(30, 0), user(31, 180))
    views = [event_record("page_views", n, s, user_id="123", page="/") for n, s in enumerate((0, 300))]
    rows = batch(VIEW, routed_of(first, second, *views), END)
    assert [(row["age"], row["version"], row["valid_from"]) for row in rows] == [(30, 7, at(0)), (31, 9, at(180))]


def test_a_change_that_arrives_late_corrects_the_rows_of_its_time_and_no_others():
    first, late = (
        change_record("users", 7, 0, None, user(30, 0)),
        change_record("users", 9, 999, user(30, 0), user(31, 180)),
    )
    views = [event_record("page_views", n, s, user_id="123", page="/") for n, s in enumerate((0, 300))]
    machine = LiveMachine(VIEW)
    rows = [*machine.deliver(*routed_of(first, *views)["123"]), *machine.pass_to(at(900))]
    assert [row["age"] for row in rows] == [30, 30]
    corrected = machine.deliver(*routed_of(late)["123"])
    assert [(row["event_time"], row["age"], row["version"]) for row in corrected] == [(at(300), 31, 9)]


def test_keyed_partitions():
    """user_id % 3 over three partitions: a user's views stay in order, in whichever order the partitions are read."""
    views = [event_record("page_views", n, n, user_id=str(n * 7 % 9), page=f"/{n}") for n in range(40)]
    partitions = [[r for r in views if int(r.value["user_id"]) % 3 == number] for number in range(3)]
    of_user = {user: [r.value["page"] for r in views if r.value["user_id"] == user] for user in map(str, range(9))}
    for order in itertools.permutations(partitions):
        rows = batch(
            VIEW, route(VIEW, keys, {"users": [], "page_views": [r for part in order for r in part]}, str), END
        )
        assert {user: [r["page"] for r in rows if r["user_id"] == user] for user in of_user} == of_user
    users = [{r.value["user_id"] for r in partition} for partition in partitions]
    assert sum(map(len, users)) == len(set.union(*users)) == 9
