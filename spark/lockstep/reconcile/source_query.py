"""How the rows of a captured table are read out of its source database, as silver has them. Pure."""

from collections.abc import Collection

import pyarrow as pa
from psycopg2 import sql

# As STRING, Debezium sends the value as text, and its own words for what no number is.
_AS_TEXT = """
CASE WHEN pg_typeof({0}) = 'numeric'::regtype THEN
  CASE {0}::text WHEN 'NaN' THEN 'NAN' WHEN 'Infinity' THEN 'POSITIVE_INFINITY' WHEN '-Infinity' THEN 'NEGATIVE_INFINITY'
  ELSE {0}::text END
ELSE {0}::text END"""
# Names of the row's columns whose value is none of the contract's type. It is null in the row.
BEYOND = "_beyond"


def select(table: tuple[str, str], schema: pa.Schema, key: Collection[str], there: Collection[str]) -> sql.Composed:
    """The query for the columns of a contract and :data:`BEYOND`, in the order of the key.

    Text is sorted by its bytes, as Spark does it.

    Args:
        table: its schema and its name.
        schema: the columns of the contract, as Spark has them.
        there: the columns that the table has. Others are null.
    """
    values = {field.name: _value(field) if field.name in there else sql.SQL("NULL") for field in schema}
    beyond = [
        sql.SQL("CASE WHEN {} THEN {} END").format(condition, sql.Literal(field.name))
        for field in schema
        if field.name in there and (condition := _is_beyond(field))
    ]
    order = [
        sql.SQL('{} COLLATE "C"').format(values[name])
        if pa.types.is_string(schema.field(name).type)
        else sql.Identifier(name)
        for name in key
    ]
    comma = sql.SQL(", ")
    return sql.SQL("SELECT {}, array_remove(ARRAY[{}]::text[], NULL) FROM {} ORDER BY {}").format(
        comma.join(values.values()), comma.join(beyond), sql.Identifier(*table), comma.join(order)
    )


def _value(field: pa.Field) -> sql.Composable:
    value = sql.SQL(_AS_TEXT if pa.types.is_string(field.type) else "{0}").format(sql.Identifier(field.name))
    condition = _is_beyond(field)
    return sql.SQL("CASE WHEN {} THEN NULL ELSE {} END").format(condition, value) if condition else value


def _is_beyond(field: pa.Field) -> sql.Composable | None:
    """The condition for values that the contract's type does not hold; None: it holds all."""
    kind = field.type
    if pa.types.is_integer(kind):
        most = 2 ** (kind.bit_width - 1)
        condition = f"{{0}} NOT BETWEEN {-most} AND {most - 1}"
    elif pa.types.is_decimal(kind):
        # PostgreSQL has NaN for larger than all numbers.
        most = f"1e{kind.precision - kind.scale}"
        condition = f"(abs({{0}}::numeric) >= {most} OR {{0}} <> round({{0}}::numeric, {kind.scale}))"
    elif pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        condition = "{0} NOT BETWEEN '0001-01-01' AND '9999-12-31 23:59:59.999999'"
    else:
        return None
    return sql.SQL(condition).format(sql.Identifier(field.name))
