"""What visitors do, as clean events. The same random numbers give the same events. Times are milliseconds, UTC. Pure."""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from random import Random
from typing import Any, NamedTuple

from shop.simulate.chance import seeded

SECOND, MINUTE, HOUR, DAY = 1_000, 60_000, 3_600_000, 86_400_000
ADS = 40
_DEVICES = ("mobile", "desktop", "tablet")
_REFERRERS = ("direct", "search-engine", "newsletter", "social", "partner")
_METHODS = ("card", "paypal", "transfer")
_PLACEMENTS = ("top", "side", "footer")
_COUNTRIES = ("France", "Germany", "Netherlands", "Spain", "Norway", "USA")
_ANSWER_MS = {"/": 60, "/product": 90, "/search": 180, "/cart": 70, "/checkout": 140}


class Event(NamedTuple):
    """An event: its topic, its key, when it happened, and the payload as the contract has it."""

    topic: str
    key: str
    at: int
    payload: dict[str, Any]


class Basket(NamedTuple):
    """An order of a known customer, with its value in thousandths of a pound."""

    order_id: str
    user_id: str
    country: str
    kind: str
    ordered_at: int
    products: list[str]
    thousandths: int

    @property
    def is_paid(self) -> bool:
        """Whether somebody pays for it: it is no cancellation and no adjustment, and not for free."""
        return self.kind == "sale" and self.thousandths > 0


def stamp(at: int) -> str:
    """ISO-8601 in UTC with milliseconds."""
    moment = datetime.fromtimestamp(at // 1000, UTC)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{at % 1000:03d}Z"


@dataclass
class Session:
    """One visit. It collects the events of its visitor."""

    rng: Random
    user_id: str
    country: str
    session_id: str
    device: str
    events: list[Event] = field(default_factory=list)

    def see(self, at: int, page: str, referrer: str = "shop") -> None:
        """Look at a page; the web server logs the request."""
        self._add("page_views", at, page=page, referrer=referrer, country=self.country, device=self.device)
        endpoint = "/" + page.split("/")[1]
        dice = self.rng.random()
        status = 500 if dice < 0.005 else 404 if dice < 0.015 else 200
        answer = int(_ANSWER_MS[endpoint] * self.rng.lognormvariate(0, 0.6))
        payload = {"endpoint": endpoint, "method": "GET", "status": status, "response_ms": answer}
        self.events.append(_event(self.rng, "requests", endpoint, at, payload))

    def search(self, at: int, product: str, query: str) -> None:
        """Search, and usually click on a result within some minutes."""
        self.see(at, "/search")
        results = self.rng.randrange(1, 60)
        self._add("searches", at, query=query, results=results, country=self.country, device=self.device)
        if self.rng.random() < 0.6:
            clicked = at + min(int(self.rng.expovariate(1 / (90 * SECOND))) + 500, HOUR)
            self._click(clicked, product, None, query, min(results, 1 + int(self.rng.expovariate(0.5))))

    def impression(self, at: int, product: str) -> None:
        """Be shown an advertisement, and click on one in four within ten minutes."""
        ad = f"ad-{self.rng.randrange(ADS):03d}"
        place = self.rng.choice(_PLACEMENTS)
        where = {"placement": place, "country": self.country, "device": self.device}
        self._add("impressions", at, ad_id=ad, product_id=product, **where)
        if self.rng.random() < 0.25:
            clicked = at + min(int(self.rng.expovariate(1 / (60 * SECOND))), 10 * MINUTE)
            self._click(clicked, product, ad, None, None)

    def login(self, at: int, success: bool = True, country: str | None = None) -> None:
        """Try to log in."""
        self._add("logins", at, success=success, country=country or self.country, device=self.device)

    def pay(self, at: int, basket: Basket) -> None:
        """Pay an order."""
        amount = f"{basket.thousandths // 1000}.{basket.thousandths % 1000:03d}"
        method = self.rng.choice(_METHODS)
        self._add("payments", at, order_id=basket.order_id, amount=amount, method=method, country=self.country)

    def _click(self, at: int, product: str, ad: str | None, query: str | None, position: int | None) -> None:
        what = {"ad_id": ad, "query": query, "position": position, "product_id": product}
        self._add("clicks", at, **what, country=self.country, device=self.device)
        self.see(at + self.rng.randrange(50, 400), f"/product/{product}")

    def _add(self, topic: str, at: int, **payload: Any) -> None:
        visitor = {"user_id": self.user_id, "session_id": self.session_id}
        self.events.append(_event(self.rng, topic, self.user_id, at, visitor | payload))


def buying(rng: Random, basket: Basket, words: dict[str, str]) -> list[Event]:
    """The visit around an order: it begins up to 20 minutes before, on the same day, and ends with the payment."""
    session = _open(rng, basket.user_id, basket.country)
    ordered = basket.ordered_at
    begin = max(ordered - rng.randrange(3 * MINUTE, 20 * MINUTE), ordered - ordered % DAY)
    session.see(begin, "/", rng.choice(_REFERRERS))
    _log_in(session, begin + 1)
    _look_around(session, begin, max(ordered - MINUTE, begin + 1), basket.products, words, rng.randrange(1, 4))
    session.see(max(begin, ordered - rng.randrange(35, 60) * SECOND), "/cart")
    session.see(max(begin, ordered - rng.randrange(1, 30) * SECOND), "/checkout")
    paid = ordered + rng.randrange(5 * SECOND, 90 * SECOND)
    session.pay(paid, basket)
    return session.events + _logged_in_abroad(session, begin, paid)


def browsing(
    rng: Random, user_id: str, country: str, at: int, products: list[str], words: dict[str, str]
) -> list[Event]:
    """A visit that buys nothing, of up to a quarter of an hour from ``at``."""
    session = _open(rng, user_id, country)
    session.see(at, "/", rng.choice(_REFERRERS))
    if rng.random() < 0.3:
        _log_in(session, at + 1)
    _look_around(session, at, at + rng.randrange(MINUTE, 15 * MINUTE), products, words, rng.randrange(0, 3))
    return session.events


def _look_around(
    session: Session, start: int, end: int, products: list[str], words: dict[str, str], views: int
) -> None:
    rng = session.rng

    def when() -> int:
        return rng.randrange(start, end)

    for _ in range(views):
        session.see(when(), f"/product/{rng.choice(products)}")
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        product = rng.choice(products)
        session.search(when(), product, words.get(product, "gift"))
    for _ in range(rng.randrange(0, 3)):
        session.impression(when(), rng.choice(products))


def _log_in(session: Session, start: int) -> None:
    """One login; rarely after failures, and rarely from another country than the payment that may follow."""
    rng = session.rng
    at = start + rng.randrange(SECOND, 20 * SECOND)
    dice = rng.random()
    failures = rng.randrange(3, 6) if dice < 0.003 else 1 if dice < 0.03 else 0
    for _ in range(failures):
        session.login(at, success=False)
        at += rng.randrange(3 * SECOND, 20 * SECOND)
    session.login(at, country=rng.choice(_COUNTRIES) if rng.random() < 0.004 else None)


def _logged_in_abroad(session: Session, begin: int, paid: int) -> list[Event]:
    """One order in a hundred: somebody logs in to the account from another country, less than five minutes before it pays."""
    # A generator of its own, so that all other events are the same with and without this one.
    rng = seeded("abroad", session.session_id)
    if rng.random() >= 0.01:
        return []
    elsewhere = [country for country in _COUNTRIES if country != session.country]
    stranger = _open(rng, session.user_id, rng.choice(elsewhere))
    stranger.login(max(begin, paid - rng.randrange(20 * SECOND, 280 * SECOND)))
    return stranger.events


def _open(rng: Random, user_id: str, country: str) -> Session:
    return Session(rng, user_id, country, f"{rng.getrandbits(64):016x}", rng.choice(_DEVICES))


def _event(rng: Random, topic: str, key: str, at: int, payload: dict[str, Any]) -> Event:
    return Event(topic, key, at, {"event_id": f"{rng.getrandbits(96):024x}", "event_time": stamp(at)} | payload)
