"""The interests of visitors: products that they follow, and searches that they save. Pure."""

from collections.abc import Iterable
from random import Random

from shop.simulate.sessions import HOUR, SECOND, Event, stamp

# The shares of product views that are followed, of searches that are saved, and of both that are taken back.
_FOLLOW, _SAVE, _TAKE_BACK = 0.15, 0.1, 0.25
_PRODUCT = "/product/"


def interests(rng: Random, events: Iterable[Event]) -> list[Event]:
    """Some of the products seen are followed soon after, and some searches saved; some of these are taken back later."""
    chosen: list[Event] = []
    for event in events:
        if event.topic == "page_views" and event.payload["page"].startswith(_PRODUCT):
            if rng.random() < _FOLLOW:
                what = {"product_id": event.payload["page"].removeprefix(_PRODUCT)}
                chosen += _for_a_while(rng, event, "follows", what, "follows")
        elif event.topic == "searches" and rng.random() < _SAVE:
            chosen += _for_a_while(rng, event, "saved_searches", {"query": event.payload["query"]}, "saved")
    return chosen


def _for_a_while(rng: Random, seen: Event, topic: str, what: dict[str, str], switch: str) -> list[Event]:
    begin = seen.at + rng.randrange(SECOND, 60 * SECOND)
    moments = [(begin, True)]
    if rng.random() < _TAKE_BACK:
        moments.append((begin + rng.randrange(10 * SECOND, HOUR), False))
    visitor = {"user_id": seen.payload["user_id"]} | what
    return [
        Event(
            topic,
            seen.key,
            at,
            {"event_id": f"{rng.getrandbits(96):024x}", "event_time": stamp(at)} | visitor | {switch: on},
        )
        for at, on in moments
    ]
