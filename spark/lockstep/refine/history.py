"""``silver.<table>_history``: all versions of the rows of a captured table (SCD2), bitemporal. A SQL view: it is always current.

A row says what a row of the source table was like from ``valid_from`` to ``valid_to`` (UTC; null: until further notice), as it
was known from ``known_from`` to ``known_to`` (null: as it is known now). For each moment of knowledge, the versions of a row of
the source follow each other without overlap, and without gap while the row exists.

- ``valid_from`` is the version's own time, such as ``updated_at``, if the contract names it (``valid_from``), else that of its
  commit. A row that is deleted ends with the commit of the delete.
- ``known_from`` is the time of the commit. A commit whose time is below that of an earlier change is known since that one.
- A version that came later wins from its ``valid_from`` on: if that is before the ``valid_from`` of versions that are known
  already, it corrects these, and they are not known any more.

R. T. Snodgrass, *Developing Time-Oriented Database Applications in SQL* (2000), chapter 10, has the same two times.
"""

from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.definition.columns import GENERATION, HISTORY, PROVENANCE, VERSION, history_columns
from lockstep.definition.tables import Tables

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from pyspark.sql import SparkSession

    from lockstep.contracts import Contract
    from lockstep.settings import Settings


def define(spark: "SparkSession", settings: "Settings", contracts: "Iterable[Contract]") -> None:
    """Create the views of captured tables, as far as they have a log. The caller holds the lease of the catalog."""
    for contract in contracts:
        tables = Tables.of(contract)
        log = lake.catalog_name(settings, tables.log)
        if tables.history and spark.catalog.tableExists(log):
            there = spark.table(log).columns
            lake.create_view(spark, settings, tables.history, history_columns(contract), query(contract, log, there))


def query(contract: "Contract", log: str, there: "Collection[str]") -> str:
    """The query of the view. Pure.

    It reads the log once, and sorts the versions of each row; a condition on the key comes before that. A row whose own times do
    not rise costs the square of the number of its versions.

    Args:
        log: the name of the table with all changes.
        there: its columns. It gets a new column of the contract with its next rows.
    """
    key = ", ".join(contract.unique_id)
    columns = contract.columns.items()
    row = ", ".join(name if name in there else f"CAST(NULL AS {kind}) AS {name}" for name, kind in columns)
    change = f"struct({', '.join((*VERSION, *PROVENANCE))})"
    known = "coalesce(_committed_at, _arrival)"
    valid = f"coalesce({contract.valid_from}, {known})" if contract.valid_from else known
    others = [name for name in contract.columns if name not in contract.unique_id]
    fields = [f"version.content.{name}" for name in others]
    fields += [f"version.change.{name}" for name in (*VERSION, *PROVENANCE)]
    fields += [f"version.{name}" for name in HISTORY if name != "is_current"]
    before, after = (
        "ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING",
        "ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING",
    )
    is_current = "valid_to IS NULL AND known_to IS NULL AS is_current"
    selected = ", ".join(is_current if name == "is_current" else name for name in history_columns(contract))
    # Names are those of contracts: code of the project.
    return f"""
WITH changes AS (
  SELECT {key}, struct({row}) AS content, {change} AS change, _deleted AS deleted, {known} AS known,
    CASE WHEN _deleted THEN {known} ELSE {valid} END AS valid,
    struct({GENERATION}, _commit_lsn, _lsn) AS position,
    -- A source may send its last changes again, and then under another commit.
    row_number() OVER (PARTITION BY {key}, {GENERATION}, _lsn
                       ORDER BY _commit_lsn DESC, _partition, _offset) AS copy
  FROM {log}
), compared AS (
  SELECT {key}, content, change, deleted, valid, position,
    max(known) OVER (PARTITION BY {key} ORDER BY position ROWS UNBOUNDED PRECEDING) AS known,
    lag(struct(deleted, content)) OVER (PARTITION BY {key} ORDER BY position) AS previous
  FROM changes WHERE copy = 1
), versions AS (
  -- A change that changes nothing is no version: a new snapshot sends all rows.
  SELECT * FROM compared
  WHERE NOT (coalesce(previous.deleted, true) AND deleted)
    AND NOT coalesce(NOT previous.deleted AND NOT deleted AND previous.content <=> content, false)
), followed AS (
  SELECT *, lead(struct(valid, known)) OVER (PARTITION BY {key} ORDER BY position) AS next FROM versions
), seen AS (
  -- Within one transaction, nobody has seen the versions before the last one.
  SELECT *, lag(struct(content, change, deleted, valid)) OVER (PARTITION BY {key} ORDER BY position) AS last
  FROM followed WHERE NOT coalesce(next.valid = valid AND next.known = known, false)
), placed AS (
  SELECT *, min(coalesce(last.valid < valid, true)) OVER (PARTITION BY {key}) AS rises FROM seen
), corrected AS (
  -- Where the times of a row do not rise: the version that this one ends, and when the end became known as another one.
  SELECT *,
    if(rises, last, try_element_at(filter(
      collect_list(if(rises, NULL, struct(content, change, deleted, valid))) OVER (PARTITION BY {key} ORDER BY position {before}),
      earlier -> earlier.valid < valid), -1)) AS ended,
    get(filter(
      collect_list(if(rises, NULL, struct(valid, known))) OVER (PARTITION BY {key} ORDER BY position {after}),
      later -> later.valid <= valid), 0).known AS replaced
  FROM placed
)
SELECT {selected} FROM (
  SELECT {key}, {", ".join(fields)} FROM corrected LATERAL VIEW explode(array(
    if(deleted, NULL, struct(content, change, valid AS valid_from, CAST(NULL AS TIMESTAMP) AS valid_to,
                             known AS known_from, next.known AS known_to)),
    if(coalesce(ended.deleted, true), NULL, struct(ended.content AS content, ended.change AS change, ended.valid AS valid_from,
                             valid AS valid_to, known AS known_from, replaced AS known_to)))) AS version
  WHERE version IS NOT NULL AND (version.known_to IS NULL OR version.known_from < version.known_to))
"""  # noqa: S608
