"""Compare the gold of an environment with that of production, row by row."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.contracts import CONTRACTS
from lockstep.definition.events import EXACT_JSON
from lockstep.definition.tables import gold_of
from lockstep.definition.view import BEGINNING
from lockstep.environments import position, sample
from lockstep.environments.extent import Extent, extent
from lockstep.reconcile.compare import by_key
from lockstep.reconcile.difference import Kind
from lockstep.reconcile.tolerance import agree

if TYPE_CHECKING:
    from datetime import datetime

    from pyspark.sql import DataFrame, Row, SparkSession

    from lockstep.definition import View
    from lockstep.ledger import Entry
    from lockstep.settings import Settings

SIDES = ("here", "there")
_ONLY_HERE, _ONLY_THERE = (f"only_{side}" for side in SIDES)
# As many as fit below a table, and still show a pattern.
EXAMPLES = 3


class Verdict(StrEnum):
    """What is known of a view after it was compared."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNKNOWN = "may differ"  # the sample lacks what the rows depend on
    NOT_COMPARED = "not compared"


@dataclass(frozen=True)
class ViewDiff:
    """A view of an environment, compared with production.

    Args:
        extent: the rows that were compared; None: none could be.
        equal, changed, only_here, only_there: how many rows are so.
        columns: how the columns differ, a sentence each. Only the others were compared.
        examples: some rows that differ.
        reason: why nothing could be compared, or why the verdict is not sure.
    """

    view: str
    verdict: Verdict
    extent: Extent | None = None
    equal: int = 0
    changed: int = 0
    only_here: int = 0
    only_there: int = 0
    columns: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    reason: str = ""


def diff(spark: "SparkSession", settings: "Settings", views: "Iterable[View]") -> Iterator[ViewDiff]:
    """Compare views of the environment with production, one after the other."""
    since = sample.since(settings) or BEGINNING
    for view in views:
        yield _view(spark, settings, view, since)


def _view(spark: "SparkSession", settings: "Settings", view: "View", since: "datetime") -> ViewDiff:
    here, there = (ledger.latest(of, gold_of(view)) for of in (settings, settings.production))
    if here is None:
        return _not_compared(
            view, f"it has no gold in {settings.env}: `lockstep --env {settings.env} apply` computes it"
        )
    if there is None:
        return _not_compared(view, "it is new: production has no gold of it")
    if view.upserts:
        there = position.at_same_position(settings, view, here)
        if there is None:
            return _not_compared(
                view,
                "its rows are never final, and production has no version at the sample's offsets: "
                f"`lockstep --env {settings.env} apply` goes on to where production is",
            )
    contracts = [CONTRACTS[stream] for stream in view.streams]
    both_until = min(here.until, there.until) if here.until and there.until else None
    found = extent(view, contracts, since, sample.is_complete(settings, contracts), both_until)
    if found.is_empty:
        return _not_compared(view, f"no row is final in both, and after the beginning of the sample ({found})")
    return _compared(spark, settings, view, found, there)


def _not_compared(view: "View", reason: str) -> ViewDiff:
    return ViewDiff(view.name, Verdict.NOT_COMPARED, reason=reason)


def _compared(spark: "SparkSession", settings: "Settings", view: "View", found: Extent, there: "Entry") -> ViewDiff:
    left = lake.read(spark, settings, gold_of(view)).where(found.where(view))
    version = there.version if view.upserts else None
    right = lake.read(spark, settings.production, gold_of(view), version).where(found.where(view))
    columns, common = _columns(left, right)
    if lacking := [name for name in view.key if name not in common]:
        return _not_compared(view, f"production's rows have another key: {', '.join(lacking)} is not in both")
    pairs = by_key(left.select(*common), right.select(*common), view, SIDES)
    counts = _counts(pairs, view)
    rows_differ = bool(counts.keys() - {Kind.EQUAL})
    differs = rows_differ or bool(columns)
    return ViewDiff(
        view.name,
        _verdict(differs, found),
        found,
        equal=counts[Kind.EQUAL],
        changed=counts[Kind.CHANGED] + counts[Kind.DOUBLED],
        only_here=counts[_ONLY_HERE],
        only_there=counts[_ONLY_THERE],
        columns=columns,
        examples=_examples(pairs, view) if rows_differ else (),
        reason=_why_unknown(settings, view) if differs and found.lacks_history else "",
    )


def _verdict(differs: bool, found: Extent) -> Verdict:
    if not differs:
        return Verdict.EQUAL
    return Verdict.UNKNOWN if found.lacks_history else Verdict.DIFFERENT


def _why_unknown(settings: "Settings", view: "View") -> str:
    return (
        f"a row of {view.name} may depend on any event before it, and the sample lacks the first ones. To know, take all of "
        f"them: `lockstep --env {settings.env} remove`, and then `apply --since {sample.EARLIEST}`"
    )


def _columns(here: "DataFrame", there: "DataFrame") -> tuple[tuple[str, ...], list[str]]:
    """How the columns differ, in sentences; and those that are the same."""
    left, right = ({f.name: f.dataType.simpleString() for f in rows.schema} for rows in (here, there))
    said = [f"the column {name} is only here" for name in left if name not in right]
    said += [f"the column {name} is only in production" for name in right if name not in left]
    other = [name for name in left if name in right and left[name] != right[name]]
    said += [f"the column {name} is {left[name]} here, and {right[name]} in production" for name in other]
    return tuple(said), [name for name in left if left[name] == right.get(name)]


def _counts(pairs: "DataFrame", view: "View") -> Counter[str]:
    """How many rows are of each kind."""
    counts = Counter({row["kind"]: row["count"] for row in pairs.groupBy("kind").count().collect()})
    if not view.approximate:
        return counts
    differing = Counter(row["kind"] for row in _differing(pairs, view))
    return differing + Counter({Kind.EQUAL.value: counts.total() - differing.total()})


def _examples(pairs: "DataFrame", view: "View") -> tuple[str, ...]:
    return tuple(
        f"{row['key']}: here {row['here'] or 'no row'}, in production {row['there'] or 'no row'}"
        for row in islice(_differing(pairs, view), EXAMPLES)
    )


def _differing(pairs: "DataFrame", view: "View") -> "Iterator[Row]":
    """The rows that differ, in order, as JSON. Approximate ones may differ by the errors that they state."""
    key, here, there = (F.to_json(of, EXACT_JSON) for of in (F.struct(*view.key), F.col("here"), F.col("there")))
    rows = pairs.where(F.col("kind") != Kind.EQUAL.value).orderBy("_window", *view.key)
    rows = rows.select("kind", key.alias("key"), here.alias("here"), there.alias("there"))
    for row in rows.toLocalIterator():
        if row["kind"] == Kind.DOUBLED or not agree(row["here"], row["there"], view.approximate):
            yield row
