"""The history of a captured table says what each row was like at any time, as it was known at any other time."""

import random
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.support.slow import slow

from lockstep.contracts import CONTRACTS
from lockstep.definition.columns import ddl, log_columns
from lockstep.refine import history

START = datetime(2026, 1, 1, tzinfo=UTC)
USERS = replace(CONTRACTS["users"], name="people")


@dataclass(frozen=True)
class Change:
    """A change of one user: its age from a moment on, told by a commit at another one. Minutes after START."""

    user: str
    lsn: int
    known: int
    valid: int
    age: int | None
    deleted: bool = False
    resent_under: int | None = None


def drawn(seed: int) -> list[Change]:
    """The changes of a few hundred users, with corrections, deletes, equal times, and changes that came twice."""
    dice, found = random.Random(seed), []
    for user in (f"u{n}" for n in range(300)):
        known = valid = 0
        honest = dice.random() < 0.5
        for number in range(dice.randrange(1, 9)):
            known += dice.choice([0, 1, 3] if honest else [-1, 0, 1, 3])
            valid = dice.randrange(valid, known + 1) if honest and valid <= known else dice.randrange(-3, 12)
            change = Change(user, 10 + number, known, valid, dice.choice([None, 1, 2, 3]), dice.random() < 0.25)
            found += [change, *([replace(change, resent_under=number)] if dice.random() < 0.2 else [])]
    return found


def rows_of(spark, changes, contract=USERS):
    """The history of the changes, as rows of the view."""
    log = [
        {
            "user_id": c.user,
            "age": c.age,
            "updated_at": at(c.valid),
            "_op": "d" if c.deleted else "u",
            "_generation": None if c.lsn < 12 else 1,
            "_commit_lsn": c.lsn - 1 if c.resent_under is None else c.resent_under,
            "_lsn": c.lsn,
            "_committed_at": at(c.known),
            "_deleted": c.deleted,
            "_topic": "people",
            "_partition": 0,
            "_offset": offset,
            "_arrival": at(c.known),
        }
        for offset, c in enumerate(changes)
    ]
    columns = log_columns(contract)
    frame = spark.createDataFrame([tuple(row.get(name) for name in columns) for row in log], ddl(columns))
    frame.createOrReplaceTempView("people_changes")
    return spark.sql(history.query(contract, "people_changes", [*columns])).collect()


def at(minute):
    return START + timedelta(minutes=minute)


def told(changes, valid, known):
    """What was known at a moment about another one: the age (None: of no user), by going through the changes one by one."""
    timeline, since, exists = [], -100, False
    for change in changes:
        since = max(since, change.known)
        if since > known or change.resent_under is not None or (change.deleted and not exists):
            continue
        exists = not change.deleted
        begin = change.known if change.deleted else change.valid
        timeline = [(start, min(end, begin), age) for start, end, age in timeline if start < begin]
        if not change.deleted:
            timeline.append((begin, 1000, change.age))
    return [age for start, end, age in timeline if start <= valid < end]


def covers(row, valid, known):
    def within(begin, end, moment):
        return begin <= moment and (end is None or moment < end)

    moments = [m.replace(tzinfo=None) for m in (at(valid), at(known))]
    return within(row.valid_from, row.valid_to, moments[0]) and within(row.known_from, row.known_to, moments[1])


@pytest.mark.parametrize("seed", [1, slow(2)])
def test_at_any_time_it_says_what_was_known_at_any_other_time(spark, seed):
    changes = drawn(seed)
    by_user, versions = {}, {}
    for change in changes:
        by_user.setdefault(change.user, []).append(change)
    for row in rows_of(spark, changes):
        versions.setdefault(row.user_id, []).append(row)
    for user, own in by_user.items():
        latest = max(c.known for c in own)
        for known in range(-1, latest + 2):
            for valid in range(-4, 16):
                found = [row.age for row in versions.get(user, []) if covers(row, valid, known)]
                assert found == told(own, valid, known), (user, valid, known, own, versions.get(user))


def test_one_version_of_each_row_is_the_current_one(spark):
    changes = drawn(3)
    last = {change.user: change for change in changes if change.resent_under is None}
    current = {row.user_id: row.age for row in rows_of(spark, changes) if row.is_current}
    assert current == {user: change.age for user, change in last.items() if not change.deleted}


def test_a_version_of_a_table_without_a_time_of_its_own_is_valid_from_its_commit(spark):
    changes = [Change("u", 10, known=1, valid=0, age=1), Change("u", 20, known=5, valid=0, age=2)]
    rows = rows_of(spark, changes, replace(USERS, valid_from=""))
    now = sorted(
        (row.valid_from.minute, row.valid_to and row.valid_to.minute, row.age) for row in rows if not row.known_to
    )
    assert now == [(1, 5, 1), (5, None, 2)]


def test_a_log_may_lack_a_new_column(spark):
    columns = log_columns(USERS)
    contract = replace(USERS, columns={**USERS.columns, "city": "STRING"})
    spark.createDataFrame([], ddl(columns)).createOrReplaceTempView("people_changes")
    found = spark.sql(history.query(contract, "people_changes", [*columns]))
    assert [f"{field.name} {field.dataType.simpleString()}" for field in found.schema][6] == "city string"
