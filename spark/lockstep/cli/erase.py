"""``lockstep erase``: forget a person, or records that were leaked into the log, in all layers."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated, Any

import typer

from lockstep import lake
from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition.tables import bronze_of
from lockstep.erase import find, receipt, run
from lockstep.errors import LockstepError

_RANGE = re.compile(r"(?P<topic>[A-Za-z0-9._-]+):(?P<partition>\d{1,6}):(?P<start>\d{1,18})-(?P<end>\d{1,18})")
# So many records of a leak; more of them are a topic to be removed.
_MOST_RECORDS = 10_000


def erase(
    subject: Annotated[
        str, typer.Option(help="Who: the value of the column that contracts name as subject; - asks for it.")
    ] = "",
    ranges: Annotated[
        list[str] | None,
        typer.Option("--range", help="Records instead: TOPIC:PARTITION:FROM-TO, the last offset left out. Repeat it."),
    ] = None,
    by: Annotated[str, typer.Option(help="Who signs.")] = "",
    reason: Annotated[str, typer.Option(help="Why.")] = "",
    plan: Annotated[bool, typer.Option("--plan", help="Only show what would be erased; write nothing.")] = False,
) -> None:
    """Erase a person, or single records, in all layers, and prove it by a receipt. It cannot be undone.

    Stop the live queries first: `lockstep down live`. An erasure that was interrupted goes on when it is asked for again.
    """
    if bool(subject) == bool(ranges):
        raise LockstepError("Name either a --subject, or what is to be erased as --range.")
    if not plan and not (by.strip() and reason.strip()):
        raise LockstepError("An erasure is signed with --by and --reason; --plan shows what it would do.")
    if subject == "-":
        # Not on the command line: shells keep a history.
        subject = typer.prompt("Who is to be forgotten", hide_input=True)
    settings = configuration.load()
    asked = run.person(_of_persons(settings), subject) if subject else _records(settings, parse_ranges(ranges or []))
    with connect(settings, "erase") as spark:
        if plan:
            _show(run.scope(spark, settings, asked.find(spark, settings)))
            return
        done = run.erase(spark, settings, asked, by, reason)
    if done is None:
        typer.echo("No record was found, so nothing was erased.")
        return
    typer.echo("\n".join(lines(done.receipt)))
    typer.echo(f"receipt  {done.file}")
    if not receipt.is_empty(done.receipt):
        raise typer.Exit(1)


def _of_persons(settings: configuration.Settings) -> list[Contract]:
    return [c for c in CONTRACTS.values() if c.subject and lake.exists(settings, bronze_of(c))]


def _records(settings: configuration.Settings, asked: Mapping[str, Mapping[int, tuple[int, ...]]]) -> run.Asked:
    by_topic = {c.topic: c for c in CONTRACTS.values() if lake.exists(settings, bronze_of(c))}
    if unknown := sorted(asked.keys() - by_topic.keys()):
        raise LockstepError(
            f"No stream has records of the topic {', '.join(unknown)}: name one of {', '.join(sorted(by_topic))}."
        )

    def found(spark: Any, settings: configuration.Settings) -> dict[str, find.Found]:
        every = {by_topic[t].name: find.of_offsets(spark, settings, by_topic[t], of) for t, of in asked.items()}
        return {name: of for name, of in every.items() if of.records}

    return run.Asked(json.dumps(asked, sort_keys=True), "", [by_topic[topic] for topic in asked], found)


def parse_ranges(ranges: list[str]) -> dict[str, dict[int, tuple[int, ...]]]:
    """By topic and partition, the offsets of ``TOPIC:PARTITION:FROM-TO``. Pure."""
    found: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for text in ranges:
        match = _RANGE.fullmatch(text)
        if match is None or int(match["start"]) >= int(match["end"]):
            raise LockstepError(f"{text!r} is no range: write TOPIC:PARTITION:FROM-TO, such as visits:0:120-125.")
        if int(match["end"]) - int(match["start"]) > _MOST_RECORDS:
            raise LockstepError(f"{text} has more than {_MOST_RECORDS:,} offsets: erase it in parts.")
        found[match["topic"]][int(match["partition"])] |= {*range(int(match["start"]), int(match["end"]))}
    return {topic: {p: tuple(sorted(of)) for p, of in by.items()} for topic, by in found.items()}


def _show(scope: run.Scope) -> None:
    for name, of in sorted(scope.found.items()):
        counts = ", ".join(f"{count:,} {outcome}" for outcome, count in of.counts.items() if count)
        typer.echo(f"{name}: {of.records:,} records ({counts or 'not in silver yet'})")
    for name, touched in sorted(scope.touched.items()):
        span = f", from {touched.first:%F %T} to {touched.last:%F %T} UTC" if touched.first and touched.last else ""
        typer.echo(f"view {name}: {sum(touched.counts.values()):,} rows{span}")
    if not scope.records:
        typer.echo("No record was found.")


def lines(kept: Mapping[str, Any]) -> list[str]:
    """The receipt for people. Pure."""
    found = [f"erased   {name}: {records:,} records" for name, records in kept["records"].items()]
    for place, of in kept["places"].items():
        is_empty = "LEFT" if of["after"] else "empty"
        found.append(f"{is_empty:<8} {place}: {of['before']:,} traces before, {of['after']:,} after")
    found += [f"LEFT     {left['place']}: {left['where']} has {left['what']}" for left in kept["left"]]
    for partition, (first, last) in kept["kafka_still_has"].items():
        found.append(
            f"kept     {partition}: erased records from {first:,} to {last:,}, until the broker's retention takes them"
        )
    found += [f"kept     {file}, until Spark starts again" for file in kept["until_spark_starts_again"]]
    for partition, (first, last) in kept["until_compaction"].items():
        found.append(
            f"kept     {partition}: replaced records from {first:,} to {last:,}, until compaction removes them"
        )
    if kept["too_common_to_look_for"]:
        found.append(f"unseen   too common to be looked for in texts: {', '.join(kept['too_common_to_look_for'])}")
    return found
