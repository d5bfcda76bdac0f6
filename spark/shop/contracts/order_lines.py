"""Lines of orders, captured from PostgreSQL. Equal lines have different numbers. Each line repeats the time of its order."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="order_lines",
    topic="shop.public.order_lines",
    kind="changes",
    columns={
        "order_id": "STRING",
        "line_no": "INT",
        "product_id": "STRING",
        "description": "STRING",
        "quantity": "INT",
        "unit_price": "DECIMAL(12,3)",
        "ordered_at": "TIMESTAMP",
    },
    key=("order_id", "line_no"),
    unique_id=("order_id", "line_no"),
    event_time="ordered_at",
    required=("order_id", "line_no", "product_id", "quantity", "unit_price"),
    partitions=1,
)
