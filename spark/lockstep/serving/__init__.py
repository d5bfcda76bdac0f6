"""The tables and views that readers query."""
