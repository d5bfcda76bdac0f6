"""The control database: what must not live in the lake, such as leases on tables. PostgreSQL, database ``lockstep``."""
