"""Products and their list price, captured from PostgreSQL."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="products",
    topic="shop.public.products",
    kind="changes",
    columns={
        "product_id": "STRING",
        "description": "STRING",
        "price": "DECIMAL(12,3)",
        "updated_at": "TIMESTAMP",
    },
    key=("product_id",),
    unique_id=("product_id",),
    event_time="updated_at",
    required=("product_id",),
    partitions=1,
)
