"""Stock per product, as counted in the weekly stocktake. Captured from PostgreSQL."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="inventory",
    description="Pieces of each product in stock, as counted in the weekly stocktake.",
    topic="shop.public.inventory",
    kind="changes",
    columns={"product_id": "STRING", "stock": "INT", "counted_at": "TIMESTAMP"},
    column_descriptions={
        "product_id": "The number of the product.",
        "stock": "Pieces that were counted. What was ordered since then is not taken off.",
        "counted_at": "When it was counted (UTC).",
    },
    key=("product_id",),
    unique_id=("product_id",),
    event_time="counted_at",
    valid_from="counted_at",
    required=("product_id", "stock"),
    partitions=1,
)
