"""Invented customers: seeded names, e-mail addresses and ages, and how they change. Pure."""

from collections.abc import Sequence
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from faker import Faker

from shop.simulate.chance import seeded

CHANGES_PER_DAY = 5


class Person(NamedTuple):
    """A customer."""

    user_id: str
    name: str
    email: str
    age: int


class Change(NamedTuple):
    """A birthday, or a new e-mail address."""

    user_id: str
    new_email: str | None


@lru_cache(maxsize=1)
def people(seed: int, user_ids: tuple[str, ...]) -> list[Person]:
    """One person per id, in the same order; the same ids and seed give the same people. E-mails are unique."""
    fake = Faker("en_GB")
    fake.seed_instance(seed)
    rng = seeded("ages", seed)
    return [_person(user_id, fake.name(), rng.randrange(18, 85)) for user_id in user_ids]


def changes(seed: int, day: date, user_ids: Sequence[str]) -> list[Change]:
    """The changes of a day: some of these customers grow a year older, some get another e-mail address."""
    rng = seeded("people", seed, day)
    chosen = rng.sample(user_ids, min(CHANGES_PER_DAY, len(user_ids)))
    return [
        Change(user_id, f"customer.{user_id}.{day:%y%m%d}@example.org" if rng.random() < 0.5 else None)
        for user_id in chosen
    ]


def _person(user_id: str, name: str, age: int) -> Person:
    slug = "".join(letter if letter.isalnum() else "." for letter in name.lower()).strip(".").replace("..", ".")
    return Person(user_id, name, f"{slug}.{user_id}@example.com", age)
