"""Lines of orders, captured from PostgreSQL. Equal lines have different numbers. Each line repeats the time of its order."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="order_lines",
    description="Lines of orders and of cancellations.",
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
    column_descriptions={
        "order_id": "The order: the number of its invoice.",
        "line_no": "The number of the line in its order. Two equal lines of an order have different numbers.",
        "product_id": "The number of the product that was ordered.",
        "description": "The name of the product, as it was printed on the invoice.",
        "quantity": "How many pieces were ordered; negative in a cancellation.",
        "unit_price": "The price of one piece, in pounds.",
        "ordered_at": "When the order was placed (UTC), as in orders.",
    },
    key=("order_id", "line_no"),
    unique_id=("order_id", "line_no"),
    event_time="ordered_at",
    required=("order_id", "line_no", "product_id", "quantity", "unit_price"),
    partitions=1,
)
