"""Products and their list price, captured from PostgreSQL."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="products",
    description="Products of the shop, with their list price.",
    topic="shop.public.products",
    kind="changes",
    columns={
        "product_id": "STRING",
        "description": "STRING",
        "price": "DECIMAL(12,3)",
        "updated_at": "TIMESTAMP",
    },
    column_descriptions={
        "product_id": "The number of the product.",
        "description": "The name of the product; null where it has none.",
        "price": "The list price of one piece, in pounds.",
        "updated_at": "When the shop last changed the row (UTC).",
    },
    key=("product_id",),
    unique_id=("product_id",),
    event_time="updated_at",
    valid_from="updated_at",
    required=("product_id",),
    partitions=1,
)
