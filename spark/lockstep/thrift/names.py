"""The names of the Thrift server's catalog: those of the pipeline's server, which they follow."""

import re
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pyspark.errors import PySparkException

from lockstep import lake
from lockstep.thrift.server import LAYERS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# A mart's name is that of a view of the table in BUILT.
_DATABASES = (*LAYERS, lake.BUILT)
# Statements. Each reads the log of a table, so a server that starts would take a second for each.
_AT_ONCE = 4
# In what Spark 4.1 says of a table.
_LOCATION = re.compile(r"^Location: (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Meaning:
    """What a name stands for: a view's query, or where a Delta table is."""

    query: str = ""
    location: str = ""


@dataclass(frozen=True)
class Followed:
    """What has changed among the readers' names, and the views that cannot be made, with Spark's reason."""

    changed: tuple[str, ...]
    refused: Mapping[str, str]


def follow(pipeline: "SparkSession", readers: "SparkSession") -> Followed:
    """Give the readers' server the names of the pipeline's, and their meanings; also to those that a client has changed there.

    A view that cannot be made is tried again by the next call.
    """
    wanted, there = dict[str, Meaning](), dict[str, Meaning]()
    for database in _DATABASES:
        readers.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
        wanted |= names(pipeline, database)
        there |= names(readers, database)
    gone = sorted(there.keys() - wanted.keys())
    for name in gone:
        _drop(readers, name, there[name])
    waiting = [name for name, meaning in wanted.items() if there.get(name) != meaning]
    changed, refused = list[str](), dict[str, str]()
    # Tables first: views read them. And views read views, so that some have to wait for others.
    waiting.sort(key=lambda name: bool(wanted[name].query))

    def make(name: str) -> str | None:
        """Make it; or why it cannot be made."""
        try:
            for statement in _statements(name, wanted[name], there.get(name)):
                readers.sql(statement)
        except PySparkException as error:
            return str(error).strip().partition("\n")[0]
        return None

    with ThreadPoolExecutor(_AT_ONCE) as threads:
        while waiting:
            reasons = dict(zip(waiting, threads.map(make, waiting), strict=True))
            changed += [name for name, reason in reasons.items() if reason is None]
            refused = {name: reason for name, reason in reasons.items() if reason is not None}
            if len(refused) == len(waiting):
                break
            waiting = [*refused]
    return Followed((*gone, *changed), refused)


def names(spark: "SparkSession", database: str) -> Mapping[str, Meaning]:
    """The views and Delta tables of a database, by ``database.name``."""
    return {f"{database}.{name}": _meaning(text) for name, text in lake.information(spark, database).items()}


def _meaning(information: str) -> Meaning:
    if query := lake.query_of(information):
        return Meaning(query=query)
    location = _LOCATION.search(information)
    return Meaning(location=location[1].strip() if location else "")


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
