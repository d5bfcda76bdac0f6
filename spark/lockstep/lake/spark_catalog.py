"""The tables of the lake as Spark's catalog knows them: create, list, register, drop."""

import logging
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from pyarrow import fs

from lockstep import dictionary
from lockstep.definition.column_changes import column_changes
from lockstep.definition.columns import Columns, ddl
from lockstep.dictionary import Texts
from lockstep.errors import ColumnsRefused
from lockstep.lake.log import exists
from lockstep.lake.paths import BUILT, LAYERS, catalog_name, path, table_name
from lockstep.lake.storage import remove
from lockstep.lake.writes import read, widen

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from lockstep.lake.small_commits import SmallCommits
    from lockstep.settings import Settings

log = logging.getLogger(__name__)
# The name of the lease that everybody holds who creates views: two that create the same view at once collide.
CATALOG = "catalog"
# Of a SQL view: without it, a view casts its columns back to the types that they had when it was created.
_FOLLOWS_TYPES = "WITH SCHEMA TYPE EVOLUTION"
# In what Spark 4.1 says of a view or table.
_QUERY = re.compile(r"^Type: VIEW$.*^View Text: (.*)^View Original Text: ", re.MULTILINE | re.DOTALL)
_COMMENT = re.compile("^Comment: (.*)$", re.MULTILINE)
# An empty database: it exists once all tables were registered since the server started.
_REGISTERED = "registered"


def create(
    spark: "SparkSession",
    settings: "Settings",
    table: str,
    columns: Columns,
    partitioned_by: str = "",
    properties: Mapping[str, str] | None = None,
) -> None:
    """Create the table if it is missing; else have it follow its columns, whose number and whose types may only grow.

    It gets the properties and the columns that it lacks: rows that are there have null in them. A column whose type has become
    wider is rewritten: rows keep their values. Its comments say what the dictionary says. The caller holds the table's lease.

    Raises:
        ColumnsRefused: the table has columns that are not among these, or of types that cannot become these.
    """
    said = dictionary.texts(table)
    if exists(settings, table):
        _follow(spark, settings, table, columns, properties or {})
        if said:
            _comment(spark, settings, table, said)
        return
    said = said or Texts()
    declared = ", ".join(f"{name} {kind} {_comment_of(said.columns.get(name, ''))}" for name, kind in columns.items())
    layout = f"PARTITIONED BY ({partitioned_by})" if partitioned_by else ""
    pairs = ", ".join(f"'{key}' = '{value}'" for key, value in (properties or {}).items())
    spark.sql(
        f"CREATE TABLE IF NOT EXISTS {catalog_name(settings, table)} ({declared}) USING delta {layout} "
        f"{_comment_of(said.description)} LOCATION '{path(settings, table)}'"
        + (f" TBLPROPERTIES ({pairs})" if pairs else "")
    )


def create_view(
    spark: "SparkSession",
    settings: "Settings",
    name: str,
    columns: Columns,
    query: str,
    known: Mapping[str, str] | None = None,
) -> None:
    """Create a SQL view, or replace it in one step: a reader finds the old one or the new one. It says what the dictionary says.

    One that has this query is left alone.

    Args:
        name: ``layer.name``.
        columns: of the query, in its order; none: nothing is said of them.
        query: it has the names of the catalog.
        known: what :func:`information` says of the views of the layer, for who creates many; None: Spark is asked for this one.
    """
    view = catalog_name(settings, name)
    database, _, own = view.partition(".")
    there = (information(spark, database, own) if known is None else known).get(own)
    said = dictionary.texts(name) or Texts()
    text = _with_comments(columns, said, query) if columns else query
    if there is None:
        spark.sql(f"CREATE VIEW {view} {_comment_of(said.description)} {_FOLLOWS_TYPES} AS {text}")
        return
    if query_of(there) != text.strip():
        # CREATE OR REPLACE VIEW removes the view before it makes the new one: in between, readers find none.
        spark.sql(f"ALTER VIEW {view} AS {text}")
    comment = _COMMENT.search(there.partition("\nView Text: ")[0])  # A query may have such a line, too.
    if said.description != (comment[1] if comment else ""):
        spark.sql(f"ALTER VIEW {view} SET TBLPROPERTIES ('comment' = {_quoted(said.description)})")


def _with_comments(columns: Columns, said: Texts, query: str) -> str:
    """The query, whose columns have the texts of the dictionary.

    ``ALTER VIEW`` takes no comments, but a view's columns have those of its query's, and a union those of its first branch. That
    one has no rows, and the optimizer takes it away.
    """
    fields = ", ".join(
        f"`{column}`: {kind} {_comment_of(said.columns.get(column, ''))}" for column, kind in columns.items()
    )
    return f"(SELECT inline(CAST(NULL AS ARRAY<STRUCT<{fields}>>)) LIMIT 0) UNION ALL SELECT * FROM ({query})"  # noqa: S608


def _follow(
    spark: "SparkSession", settings: "Settings", table: str, columns: Columns, properties: Mapping[str, str]
) -> None:
    # The server may not know it yet. Without columns and properties: those that it has may be of an older release.
    known = catalog_name(settings, table)
    spark.sql(f"CREATE TABLE IF NOT EXISTS {known} USING delta LOCATION '{path(settings, table)}'")
    if properties:
        _opened(settings, table).set_properties(properties)
    changes = column_changes(_types(read(spark, settings, table)), _types(spark.createDataFrame([], ddl(columns))))
    if changes.refused:
        raise ColumnsRefused(table, changes.refused)
    if changes.new:
        new = ddl({name: columns[name] for name in changes.new})
        spark.sql(f"ALTER TABLE {known} ADD COLUMNS ({new})")
        log.info("%s has new columns: %s", table, new)
    if changes.wider:
        log.info("%s is rewritten, because types are wider now: %s", table, ddl(changes.wider))
        widen(spark, settings, table, changes.wider)


def _comment(spark: "SparkSession", settings: "Settings", table: str, said: Texts) -> None:
    """Change the comments that say something else: one commit for the columns, and one for the table."""
    opened = _opened(settings, table)
    there = opened.texts
    wanted = {name: said.columns.get(name, "") for name in opened.types}
    changed = {name: text for name, text in wanted.items() if text != there.columns.get(name, "")}
    if changed:
        changes = ", ".join(f"`{name}` COMMENT {_quoted(text)}" for name, text in changed.items())
        spark.sql(f"ALTER TABLE {catalog_name(settings, table)} ALTER COLUMN {changes}")
    if there.description != said.description:
        spark.sql(f"COMMENT ON TABLE {catalog_name(settings, table)} IS {_quoted(said.description)}")


def _comment_of(text: str) -> str:
    return f"COMMENT {_quoted(text)}" if text else ""


def _quoted(text: str) -> str:
    """The text as a literal of Spark SQL."""
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def _opened(settings: "Settings", table: str) -> "SmallCommits":
    # Imported here: it loads delta-rs, and most commands of the CLI create nothing.
    from lockstep.lake.small_commits import SmallCommits

    return SmallCommits(settings, table)


def differences(spark: "SparkSession", settings: "Settings", table: str, columns: Columns) -> list[str]:
    """Why a table cannot take rows with these columns: a sentence for each column.

    A column that it lacks can be added, and one of a narrower type can be widened.
    """
    wanted = _types(spark.createDataFrame([], ddl(columns)))
    return [*column_changes(_types(read(spark, settings, table)), wanted).refused]


def _types(rows: "DataFrame") -> dict[str, str]:
    return {field.name: field.dataType.simpleString() for field in rows.schema}


def tables(settings: "Settings", layers: Iterable[str] = LAYERS) -> list[str]:
    """The tables of the lake in these layers, as ``layer.name``, sorted."""
    filesystem, root = fs.FileSystem.from_uri(settings.lake)
    names = (
        f"{layer}.{info.base_name}"
        for layer in layers
        for info in filesystem.get_file_info(fs.FileSelector(f"{root}/{layer}", allow_not_found=True))
    )
    return sorted(name for name in names if exists(settings, name))


def registered(spark: "SparkSession", settings: "Settings") -> bool:
    """Whether the tables were registered since the server started."""
    return bool(spark.catalog.databaseExists(catalog_name(settings, _REGISTERED)))


def information(spark: "SparkSession", database: str, like: str = "*") -> dict[str, str]:
    """By the name of each table and view of a database of the catalog, what Spark says of it: a line for each fact.

    Args:
        like: a pattern of their names, as Spark's SHOW has it.
    """
    rows = spark.sql(f"SHOW TABLE EXTENDED IN {database} LIKE '{like}'").collect()
    return {row["tableName"]: row["information"] for row in rows if not row["isTemporary"]}


def query_of(said: str) -> str | None:
    """The query of a SQL view, in what :func:`information` says of it; None: it is a table."""
    view = _QUERY.search(said)
    return view[1].strip() if view else None


def register(spark: "SparkSession", settings: "Settings") -> bool:
    """Register all tables of the lake by name, if the server has started since the last time: its catalog is in memory.

    A table whose log is broken is left out, and the others are registered.

    Returns:
        Whether they had to be registered.
    """
    from pyspark.errors import PySparkException

    if registered(spark, settings):
        return False
    for layer in (*LAYERS, BUILT):
        spark.sql(f"CREATE DATABASE IF NOT EXISTS {catalog_name(settings, layer)}")
    for table in tables(settings):
        try:
            known = table_name(settings, table)
            spark.sql(f"CREATE TABLE IF NOT EXISTS {known} USING delta LOCATION '{path(settings, table)}'")
        except PySparkException as error:
            reason = str(error).partition("\n")[0]
            log.error("%s cannot be read, see `lockstep ledger verify`: %s", table, reason)
    spark.sql(f"CREATE DATABASE IF NOT EXISTS {catalog_name(settings, _REGISTERED)}")
    return True


def forget(spark: "SparkSession", settings: "Settings") -> None:
    """Remove the names of all tables and views of the lake from the catalog. Their files stay."""
    for database in (_REGISTERED, *LAYERS, BUILT):
        spark.sql(f"DROP DATABASE IF EXISTS {catalog_name(settings, database)} CASCADE")


def drop(spark: "SparkSession", settings: "Settings", table: str) -> None:
    """Remove the table, its files and its log, if there is one."""
    filesystem, root = fs.FileSystem.from_uri(path(settings, table))
    if filesystem.get_file_info(root).type != fs.FileType.Directory:
        return
    known = table_name(settings, table)
    if spark.catalog.databaseExists(known.partition(".")[0]):
        spark.sql(f"DROP TABLE IF EXISTS {known}")
    remove(path(settings, table))


def drop_view(spark: "SparkSession", settings: "Settings", name: str) -> None:
    """Remove the SQL view ``layer.name``, if there is one."""
    known = catalog_name(settings, name)
    if spark.catalog.databaseExists(known.partition(".")[0]):
        spark.sql(f"DROP VIEW IF EXISTS {known}")
