"""The shop's views, one module each: the only place with business logic."""
