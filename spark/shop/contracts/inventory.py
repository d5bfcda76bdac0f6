"""Stock per product, as counted in the weekly stocktake. Captured from PostgreSQL."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="inventory",
    topic="shop.public.inventory",
    kind="changes",
    columns={"product_id": "STRING", "stock": "INT", "counted_at": "TIMESTAMP"},
    key=("product_id",),
    unique_id=("product_id",),
    event_time="counted_at",
    required=("product_id", "stock"),
    partitions=1,
)
