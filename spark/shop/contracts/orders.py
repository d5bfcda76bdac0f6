"""Orders of the shop, captured from PostgreSQL. A cancellation is an order of its own."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="orders",
    description="Orders. A cancellation or an adjustment is an order of its own.",
    topic="shop.public.orders",
    kind="changes",
    columns={
        "order_id": "STRING",
        "user_id": "STRING",
        "country": "STRING",
        "kind": "STRING",
        "ordered_at": "TIMESTAMP",
        "amount": "DECIMAL(12,3)",
    },
    column_descriptions={
        "order_id": "The number of the invoice. That of a cancellation begins with C, that of an adjustment with A.",
        "user_id": "The customer: user_id of users; null where the shop did not know.",
        "country": "The country of the order. A customer may order from several.",
        "kind": "sale, cancellation or adjustment (of bad debt).",
        "ordered_at": "When the order was placed (UTC).",
        "amount": "The sum of quantity times unit price over its lines, in pounds; negative for a cancellation.",
    },
    key=("order_id",),
    unique_id=("order_id",),
    event_time="ordered_at",
    required=("order_id", "kind", "ordered_at"),
    subject="user_id",
    partitions=1,
)
