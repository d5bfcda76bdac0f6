"""The late rows of each view: which valid events arrived too late, and whether they still counted."""

from collections.abc import Iterator, Mapping

from tests.shop.oracles.record import Record, accepted, delay

# By view, the event streams that it reads, and after how many seconds an event of them is late.
LATE_AFTER: dict[str, tuple[tuple[str, ...], float]] = {
    "account_balances": (("account_events",), 10),
    "activity_within_five_minutes": (("page_views", "searches", "clicks"), 10),
    "ad_click_through": (("impressions", "clicks"), 10),
    "ad_ctr": (("impressions", "clicks"), 10),
    "cart_contents": (("cart_events",), 10),
    "failed_logins": (("logins",), 10),
    "fraud_alerts": (("logins", "payments"), 10),
    "orders_in_eight_minutes": (("payments",), 30),
    "page_views_enriched": (("page_views",), 10),
    "page_views_per_five_minutes": (("page_views",), 5),
    "page_views_per_minute": (("page_views",), 5),
    "price_changes_followed": (("follows",), 10),
    "recently_viewed": (("page_views",), 10),
    "response_times": (("requests",), 30),
    "sampled_traffic": (("page_views",), 10),
    "saved_search_matches": (("saved_searches",), 10),
    "search_click_through": (("searches", "clicks"), 10),
    "search_positions": (("searches", "clicks"), 10),
    "sensor_alerts": (("sensors",), 10),
    "sensor_averages": (("sensors",), 30),
    "trending_pages": (("page_views",), 5),
    "trending_products": (("page_views",), 5),
    "user_sessions": (("page_views", "payments"), 10),
    "viewed_together": (("page_views",), 10),
}
# A late event of these views still counts when it arrived within so many seconds.
COUNTED_WITHIN = {"sensor_averages": 600}


def rows(view: str, records: Mapping[str, list[Record]]) -> Iterator[tuple[str, int, int, bool]]:
    """Stream, partition and offset of each late event, and whether it counted."""
    streams, limit = LATE_AFTER[view]
    for stream in streams:
        for record in accepted(records[stream]):
            if delay(record) > limit:
                yield stream, record.partition, record.offset, delay(record) <= COUNTED_WITHIN.get(view, limit)
