"""What holds of a captured table's history and log, whatever happened to its database. Each function returns what breaks it."""

from typing import Any

from lockstep.contracts import Contract
from lockstep.definition.tables import Tables

# Moments of knowledge that are looked at, beside what is known now.
_MOMENTS = 20


def broken_tiles(spark: Any, contract: Contract) -> list[Any]:
    """The versions that overlap the next one of their row, or leave a gap although nothing has deleted the row.

    For what is known now, and for what was known at some moments before.
    """
    tables, key = Tables.of(contract), ", ".join(contract.unique_id)
    return tiles(spark, f"SELECT * FROM {tables.history}", f"SELECT * FROM {tables.log}", key)


def tiles(spark: Any, history: str, log: str, key: str) -> list[Any]:
    """The same for two queries."""
    query = f"""
WITH history AS ({history}), moments AS (
  SELECT * FROM (SELECT DISTINCT known_from AS moment FROM history ORDER BY hash(moment) LIMIT {_MOMENTS})
  UNION ALL SELECT TIMESTAMP '9999-01-01'
), known AS (
  SELECT moment, {key}, valid_from, valid_to,
    lead(valid_from) OVER (PARTITION BY moment, {key} ORDER BY valid_from) AS next_from
  FROM history JOIN moments ON known_from <= moment AND (known_to > moment OR known_to IS NULL)
), deletes AS (
  SELECT DISTINCT {key}, coalesce(_committed_at, _arrival) AS valid_to, true AS is_deleted FROM ({log}) WHERE _deleted
), judged AS (
  SELECT *, CASE
    WHEN valid_to <= valid_from THEN 'ends before it begins'
    WHEN next_from < valid_to OR (valid_to IS NULL AND next_from IS NOT NULL) THEN 'overlap'
    WHEN NOT valid_to <=> next_from AND is_deleted IS NULL THEN 'gap' END AS broken
  FROM known LEFT JOIN deletes USING ({key}, valid_to)
)
SELECT * FROM judged WHERE broken IS NOT NULL"""
    return spark.sql(query).collect()


def fallen_commits(spark: Any, contract: Contract) -> list[Any]:
    """The changes of Debezium whose commit LSN is below that of one before them.

    What it sent again after a crash does not count.
    """
    tables = Tables.of(contract)
    by_debezium = f"""
SELECT s.* FROM {tables.log} s JOIN {tables.bronze} b ON s._partition = b.partition AND s._offset = b.offset
WHERE s._op <> 'r' AND get_json_object(CAST(b.value AS STRING), '$.source.connector') = 'postgresql'"""
    return falls(spark, by_debezium, ", ".join(contract.unique_id))


def falls(spark: Any, changes: str, key: str) -> list[Any]:
    """The same for a query."""
    query = f"""
WITH once AS (
  SELECT *, row_number() OVER (PARTITION BY _generation, {key}, _lsn ORDER BY _offset) AS copy FROM ({changes})
), compared AS (
  SELECT *, max(_commit_lsn) OVER (PARTITION BY _generation, _partition ORDER BY _offset) AS newest FROM once WHERE copy = 1
)
SELECT * FROM compared WHERE _commit_lsn < newest"""
    return spark.sql(query).collect()
