"""Orders of the shop, captured from PostgreSQL. A cancellation is an order of its own."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="orders",
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
    key=("order_id",),
    unique_id=("order_id",),
    event_time="ordered_at",
    required=("order_id", "kind", "ordered_at"),
    partitions=1,
)
