"""Customers of the shop, captured from PostgreSQL. Names and e-mail addresses are invented, but treated as personal data."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="users",
    description="Customers of the shop. They are invented, but treated as real persons.",
    topic="shop.public.users",
    kind="changes",
    columns={
        "user_id": "STRING",
        "name": "STRING",
        "email": "STRING",
        "age": "INT",
        "created_at": "TIMESTAMP",
        "updated_at": "TIMESTAMP",
    },
    column_descriptions={
        "user_id": "The customer's number.",
        "name": "First and last name.",
        "email": "The e-mail address.",
        "age": "The age in years.",
        "created_at": "When the customer registered (UTC).",
        "updated_at": "When the shop last changed the row (UTC).",
    },
    key=("user_id",),
    unique_id=("user_id",),
    event_time="updated_at",
    valid_from="updated_at",
    required=("user_id",),
    subject="user_id",
    pii=("name", "email"),
    partitions=1,
)
