"""What each table and each of its columns means.

The texts of a stream are in its contract, and those of a view in its module; here are those of the platform's own columns and
tables. `lockstep describe`, the comments of the tables, dbt's sources and the data docs all show what this room says.
"""

from lockstep.dictionary.tables import Column, Table, Texts, of_ops, of_stream, of_view, tables, texts

__all__ = ["Column", "Table", "Texts", "of_ops", "of_stream", "of_view", "tables", "texts"]
