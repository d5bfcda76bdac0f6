"""What is to be erased, and what it touches."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.contracts import Contract
from lockstep.definition.tables import Tables
from lockstep.erase import find, marts, views
from lockstep.erase.find import Found
from lockstep.erase.views import Touched

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from lockstep.settings import Settings


@dataclass(frozen=True)
class Asked:
    """What is asked for.

    Args:
        name: by which the same erasure is known again. Only its token is kept.
        subject: what names the person; empty: single records are to be erased.
        contracts: the streams in which it is looked for.
        find: by stream, the records; streams without any are left out.
    """

    name: str
    subject: str
    contracts: "Sequence[Contract]"
    find: "Callable[[SparkSession, Settings], Mapping[str, Found]]"


@dataclass(frozen=True)
class Scope:
    """What an erasure touches.

    Args:
        found: by stream.
        touched: by view.
        days: of the marts.
    """

    found: Mapping[str, Found]
    touched: Mapping[str, Touched]
    days: frozenset[date] = frozenset()

    @property
    def records(self) -> int:
        """How many records are to be erased."""
        return sum(found.records for found in self.found.values())

    @property
    def values(self) -> frozenset[str]:
        """What else names the person."""
        return frozenset[str]().union(*(found.values for found in self.found.values()))

    @property
    def tokens(self) -> frozenset[str]:
        """What stands for the person's values."""
        return frozenset[str]().union(*(found.tokens for found in self.found.values()))


def of_person(contracts: "Sequence[Contract]", value: str) -> Asked:
    """All records of these streams that are about a person."""

    def find_all(spark: "SparkSession", settings: "Settings") -> dict[str, Found]:
        there = [c for c in contracts if lake.exists(settings, Tables.of(c).bronze)]
        every = {c.name: find.of_subject(spark, settings, c, value) for c in there}
        return {name: found for name, found in every.items() if found.records}

    return Asked(value, value, contracts, find_all)


def scope_of(spark: "SparkSession", settings: "Settings", asked: Asked) -> Scope:
    """What is to be erased, as far as bronze has it, and what it touches. Changes nothing."""
    remove_what_is_shuffled(spark)
    found = asked.find(spark, settings)
    offsets = {name: of.offsets for name, of in found.items()}
    touched = {v.name: views.touched(spark, settings, v, offsets) for v in views.views_of(settings, found)}
    return Scope(found, touched, frozenset(marts.days_of(spark, settings, found)))


def remove_what_is_shuffled(spark: "SparkSession") -> None:
    """Have Spark remove the files of a shuffle, which have the records, when its query ends, and not some minutes later."""
    spark.conf.set("spark.sql.connect.shuffleDependency.fileCleanup.enabled", "true")
