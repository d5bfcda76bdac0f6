"""The control database, PostgreSQL's ``lockstep``: what must not be in the lake, such as leases and heads of ledgers."""
