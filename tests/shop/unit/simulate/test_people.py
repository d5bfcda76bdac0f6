"""Customers are invented, and the same each time."""

from datetime import date

from shop.simulate.people import changes, people

IDS = tuple(str(number) for number in range(12_346, 12_346 + 4_372))


def test_the_same_seed_gives_the_same_people_and_another_gives_others() -> None:
    assert people(7, IDS) == people(7, IDS)
    assert [p.name for p in people(7, IDS)] != [p.name for p in people(8, IDS)]


def test_everyone_has_an_address_of_their_own_that_reaches_nobody() -> None:
    everyone = people(7, IDS)
    assert len({person.email for person in everyone}) == len(IDS)
    assert all(person.email.endswith("@example.com") and 18 <= person.age < 85 for person in everyone)


def test_a_day_changes_some_customers_the_same_each_time() -> None:
    day = date(2011, 11, 14)
    changed = changes(7, day, IDS)
    assert changed == changes(7, day, IDS)
    assert len({change.user_id for change in changed}) == 5
    assert changed != changes(7, date(2011, 11, 15), IDS)


def test_a_shop_without_customers_changes_nobody() -> None:
    assert changes(7, date(2011, 11, 14), []) == []
