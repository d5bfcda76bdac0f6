"""The shop's views, one module each. All business logic is here."""
