"""The names of the Thrift server's catalog: those of the pipeline's server, which they follow."""

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from lockstep import lake
from lockstep.thrift.server import LAYERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

log = logging.getLogger(__name__)
# What reads others comes after them. A mart's name is that of a view of the table in BUILT.
_DATABASES = tuple(sorted({*LAYERS, lake.BUILT}, key=[*LAYERS, lake.BUILT, lake.MARTS].index))
# In what Spark 4.1 says of a view or table.
_VIEW = re.compile(r"^Type: VIEW$.*^View Text: (.*)^View Original Text: ", re.MULTILINE | re.DOTALL)
_LOCATION = re.compile(r"^Location: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Meaning:
    """What a name stands for: a view's query, or where a Delta table is."""

    query: str = ""
    location: str = ""


def follow(pipeline: "SparkSession", readers: "SparkSession") -> list[str]:
    """Give the readers' server the names of the pipeline's; the names that it has got, changed or lost.

    Also a name that a client has changed there means again what it should. A view that cannot be made yet is tried again by
    the next call.
    """
    changed: list[str] = []
    for database in _DATABASES:
        wanted = names(pipeline, database)
        readers.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
        there = names(readers, database)
        for name in sorted(there.keys() - wanted.keys()):
            _drop(readers, name, there[name])
            changed.append(name)
        for name, meaning in wanted.items():
            if there.get(name) != meaning and _define(readers, name, meaning, there.get(name)):
                changed.append(name)
    return changed


def names(spark: "SparkSession", database: str) -> Mapping[str, Meaning]:
    """The views and Delta tables of a database, by ``database.name``; none where there is no such database."""
    if not spark.catalog.databaseExists(database):
        return {}
    rows = spark.sql(f"SHOW TABLE EXTENDED IN {database} LIKE '*'").collect()
    return {f"{database}.{row['tableName']}": _meaning(row["information"]) for row in rows if not row["isTemporary"]}


def _meaning(information: str) -> Meaning:
    if view := _VIEW.search(information):
        return Meaning(query=view[1].rstrip("\n"))
    location = _LOCATION.search(information)
    return Meaning(location=location[1].strip() if location else "")


def _define(spark: "SparkSession", name: str, meaning: Meaning, before: Meaning | None) -> bool:
    try:
        for statement in _statements(name, meaning, before):
            spark.sql(statement)
    except PySparkException as error:
        log.warning("%s cannot be read yet: %s", name, str(error).strip().partition("\n")[0])
        return False
    return True


def _statements(name: str, meaning: Meaning, before: Meaning | None) -> Iterable[str]:
    if meaning.query and before and before.query:
        # In one step: readers find the old one or the new one.
        return [f"ALTER VIEW {_quoted(name)} AS {meaning.query}"]
    dropped = [f"DROP {'VIEW' if before.query else 'TABLE'} {_quoted(name)}"] if before else []
    if meaning.query:
        return [*dropped, f"CREATE VIEW {_quoted(name)} WITH SCHEMA TYPE EVOLUTION AS {meaning.query}"]
    return [*dropped, f"CREATE TABLE {_quoted(name)} USING delta LOCATION '{meaning.location}'"]


def _drop(spark: "SparkSession", name: str, meaning: Meaning) -> None:
    spark.sql(f"DROP {'VIEW' if meaning.query else 'TABLE'} IF EXISTS {_quoted(name)}")


def _quoted(name: str) -> str:
    database, _, own = name.partition(".")
    return f"`{database}`.`{own}`"
