"""page_views_enriched: each view has the user as of its time, whenever the changes of the user arrive."""

import itertools
from datetime import timedelta
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.shop.oracles import page_views_enriched as oracle
from tests.shop.oracles.tokens import token
from tests.shop.unit.views.feed import LiveMachine, assert_every_way_gives, bag, batch, route
from tests.support.records import at, change_record, event_record, table_records
from tests.support.stored_machine import StoredMachine

from lockstep.definition import Event
from lockstep.definition.keyed import last_of_each_key
from shop.views.page_views_enriched import VIEW

END = at(10_000)
DAY = 86_400
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
    assert_every_way_gives(oracle.rows(records), VIEW, routed, END, dice)


@given(
    # The source's clock may be set back.
    st.lists(st.tuples(USERS, st.integers(-3, 60), st.integers(0, 45), st.integers(0, 30)), max_size=12),
    st.lists(st.tuples(USERS, st.integers(0, 200)), max_size=15, unique_by=lambda view: view[1]),
)
def test_changes_that_come_months_late_count_by_their_commit_however_far_apart_the_topics_are_read(customers, views):
    """The days of each change: from the change before to its commit, from valid to committed, and from committed to read."""
    changes, read, committed = [], [], 0
    for lsn, (name, gap, backdated, behind) in enumerate(customers, 1):
        committed += gap * DAY
        row = {
            "user_id": name,
            "name": f"N{lsn}",
            "age": lsn,
            "updated_at": at(committed - backdated * DAY).isoformat(),
        }
        changes.append(change_record("users", lsn, committed, None, row))
        read.append(max([*read[-1:], committed + behind * DAY]))
    records = {
        "users": changes,
        "page_views": [
            event_record("page_views", n, day * DAY, user_id=name, page="/")
            for n, (name, day) in enumerate(sorted(views, key=lambda view: view[1]))
        ],
    }
    expected = bag(oracle.rows(records))
    assert bag(batch(VIEW, route(VIEW, keys, records, token), at(1_000 * DAY))) == expected
    emitted = []
    for rows in route(VIEW, keys, records, token).values():
        machine = LiveMachine(VIEW)
        when = {change.value["source"]["lsn"]: second for change, second in zip(changes, read, strict=True)}
        arrivals = [(at(when[int(r["_position"][:20])]) if r["_position"] else r["_arrival"], r) for r in rows]
        for _, row in sorted(arrivals, key=lambda arrival: arrival[0]):
            emitted += machine.deliver(row)
            emitted += machine.pass_to(row["_arrival"] + timedelta(minutes=1)) if not row["_position"] else []
    assert bag(last_of_each_key(emitted, VIEW.key)) == expected


@pytest.mark.parametrize("days", [0, 20], ids=["at once", "after twenty days"])
def test_a_users_state_is_no_larger_after_a_year_than_after_a_season(days):
    """The days from when a version is valid to its commit."""
    machine, sizes = StoredMachine(VIEW), {}
    for day in range(400):
        changed, viewed = at(day * DAY), at(day * DAY + 60)
        valid = at((day - days) * DAY).isoformat()
        version = {"name": "N", "age": 30, "updated_at": valid, "_lsn": day, "_deleted": False}
        machine.process(Event(changed, "123", "users", version, f"{day:020}"))
        machine.process(Event(viewed, f"e{day:03}", "page_views", {"user_id": "123", "page": "/"}))
        sizes[day] = machine.size
    assert sizes[399] <= 1.05 * sizes[100]


def test_a_page_view_costs_the_same_however_many_its_user_has():
    machine, moved = StoredMachine(VIEW), []
    for number in range(7_000):
        machine.process(Event(at(number), f"e{number:04}", "page_views", {"user_id": "123", "page": "/"}))
        moved.append(machine.moved)
    assert machine.size > 250_000
    assert sum(moved[6_000:]) / 1_000 < 1.5 * sum(moved[200:400]) / 200


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
    assert [(row["known_age"], row["known_version"]) for row in rows] == [(30, 7), (31, 9)]


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
    assert [(row["known_age"], row["known_version"]) for row in corrected] == [(30, 7)], "nobody knew it then"


def test_what_was_known_goes_by_the_commit_and_not_by_when_it_was_read():
    first, second = (
        change_record("users", 7, 0, None, user(30, 0)),
        change_record("users", 9, 200, user(30, 0), user(31, 180)),
    )
    views = [event_record("page_views", n, s, user_id="123", page="/") for n, s in enumerate((190, 300))]
    machine = LiveMachine(VIEW)
    rows = [*machine.deliver(*routed_of(first, *views)["123"]), *machine.pass_to(at(900))]
    assert [row["known_version"] for row in rows] == [7, 7]
    corrected = machine.deliver(*routed_of(second)["123"])
    assert [(row["event_time"], row["version"], row["known_version"]) for row in corrected] == [
        (at(190), 9, 7),
        (at(300), 9, 9),
    ], "it was valid at both, and committed between them"


def test_a_change_corrects_what_was_known_also_where_the_sources_clock_was_set_back():
    changes = [(7, 0, 30, 0), (8, 400, 31, 100), (9, 200, 32, 50)]
    first, second, third = (change_record("users", lsn, s, None, user(age, valid)) for lsn, s, age, valid in changes)
    machine = LiveMachine(VIEW)
    view = event_record("page_views", 0, 300, user_id="123", page="/")
    rows = [*machine.deliver(*routed_of(first, second, view)["123"]), *machine.pass_to(at(900))]
    assert [(row["version"], row["known_version"]) for row in rows] == [(8, 7)]
    corrected = machine.deliver(*routed_of(third)["123"])
    assert [(row["version"], row["known_version"]) for row in corrected] == [(8, 9)]


def test_of_a_table_that_is_loaded_late_it_is_known_what_was_true_and_that_nobody_knew_it():
    loaded = change_record("users", 7, 500, None, user(30, 0))
    views = [event_record("page_views", n, s, user_id="123", page="/") for n, s in enumerate((100, 600))]
    rows = batch(VIEW, routed_of(loaded, *views), END)
    assert [(row["version"], row["known_version"]) for row in rows] == [(7, None), (7, 7)]


def test_a_user_who_is_deleted_is_not_known_from_the_commit_on():
    made = change_record("users", 7, 0, None, user(30, 0))
    deleted = change_record("users", 9, 200, user(30, 0), None)
    views = [event_record("page_views", n, s, user_id="123", page="/") for n, s in enumerate((100, 300))]
    rows = batch(VIEW, routed_of(made, deleted, *views), END)
    assert [(row["version"], row["known_version"]) for row in rows] == [(7, 7), (None, None)]


def test_of_two_versions_of_the_same_time_the_later_one_is_known_once_it_is_committed():
    first, again = (
        change_record("users", 7, 0, None, user(30, 0)),
        change_record("users", 9, 200, user(30, 0), user(31, 0)),
    )
    views = [event_record("page_views", n, s, user_id="123", page="/") for n, s in enumerate((100, 300))]
    rows = batch(VIEW, routed_of(first, again, *views), END)
    assert [(row["version"], row["known_version"]) for row in rows] == [(9, 7), (9, 9)]


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
