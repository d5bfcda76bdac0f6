"""Customers of the shop, captured from PostgreSQL. Names and e-mail addresses are invented, but treated as personal data."""

from lockstep.contracts import Contract

CONTRACT = Contract(
    name="users",
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
    key=("user_id",),
    unique_id=("user_id",),
    event_time="updated_at",
    required=("user_id",),
    pii=("name", "email"),
    partitions=1,
)
