"""Pages that visitors of the shop have viewed."""

from lockstep.contracts import Contract
from shop.descriptions import EVENT, PLACE, VISITOR

CONTRACT = Contract(
    name="page_views",
    description="Pages that visitors of the shop have viewed.",
    topic="page_views",
    kind="events",
    columns={
        "event_id": "STRING",
        "event_time": "TIMESTAMP",
        "user_id": "STRING",
        "session_id": "STRING",
        "page": "STRING",
        "referrer": "STRING",
        "country": "STRING",
        "device": "STRING",
    },
    column_descriptions={
        **EVENT,
        **VISITOR,
        **PLACE,
        "page": "The path of the page, such as /search or /product/22423.",
        "referrer": (
            "Where the visitor came from: shop for a link of the shop's own, else direct, search-engine, newsletter, "
            "social or partner."
        ),
    },
    key=("user_id",),
    unique_id=("event_id",),
    event_time="event_time",
    required=("event_id", "event_time", "user_id", "page"),
    subject="user_id",
)
