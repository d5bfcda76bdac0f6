"""What an erasure would do, and what it has done, for people. Nobody is named. Pure."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lockstep.results import Outcome, TableResult

if TYPE_CHECKING:
    from lockstep.erase.scope import Scope


def planned(scope: "Scope") -> Iterator[TableResult]:
    """The records that would be erased, by stream, and the rows of views that would be computed again."""
    for name, of in sorted(scope.found.items()):
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in of.counts.items() if count)
        yield TableResult(name, Outcome.DONE, of.records, detail=f"records ({counts or 'not in silver yet'})")
    for name, touched in sorted(scope.touched.items()):
        span = f", from {touched.first:%F %T} to {touched.last:%F %T} UTC" if touched.first and touched.last else ""
        yield TableResult(f"view {name}", Outcome.DONE, sum(touched.counts.values()), detail=f"rows{span}")


def as_lines(scope: "Scope") -> list[str]:
    """The same as lines of text."""
    return [f"{of.table}: {of.rows:,} {of.detail}" for of in planned(scope)] or ["No record was found."]


def erased(kept: Mapping[str, Any]) -> Iterator[TableResult]:
    """What a receipt says: what was erased, and of each place what was found before and after. What is left is a failure."""
    for name, records in kept["records"].items():
        yield TableResult(name, Outcome.DONE, records, detail="records erased")
    for place, of in kept["places"].items():
        outcome = Outcome.FAILED if of["after"] else Outcome.DONE
        yield TableResult(place, outcome, detail=f"{of['before']:,} traces before, {of['after']:,} after")
    for left in kept["left"]:
        yield TableResult(f"{left['place']}: {left['where']}", Outcome.FAILED, detail=f"has {left['what']}")
    for where, reason in _later(kept):
        yield TableResult(where, Outcome.WAITING, detail=reason)


def lines(kept: Mapping[str, Any]) -> list[str]:
    """The receipt as lines of text."""
    found = [f"erased   {name}: {records:,} records" for name, records in kept["records"].items()]
    for place, of in kept["places"].items():
        is_empty = "LEFT" if of["after"] else "empty"
        found.append(f"{is_empty:<8} {place}: {of['before']:,} traces before, {of['after']:,} after")
    found += [f"LEFT     {left['place']}: {left['where']} has {left['what']}" for left in kept["left"]]
    found += [f"kept     {where}: {reason}" for where, reason in _later(kept)]
    if kept["too_common_to_look_for"]:
        found.append(f"unseen   too common to be looked for in texts: {', '.join(kept['too_common_to_look_for'])}")
    return found


def _later(kept: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What goes by itself, later: where it is, and when it goes."""
    for partition, (first, last) in kept["kafka_still_has"].items():
        at = kept["kafka_keeps_until"].get(partition)
        what, by = ("sent", f", by {datetime.fromisoformat(at):%F %R} UTC") if at else ("erased", "")
        yield partition, f"{what} records from {first:,} to {last:,}, until the broker's retention takes them{by}"
    for file in kept["until_spark_starts_again"]:
        yield file, "until Spark starts again"
    for partition, (first, last) in kept["until_compaction"].items():
        yield partition, f"replaced records from {first:,} to {last:,}, until compaction removes them"
