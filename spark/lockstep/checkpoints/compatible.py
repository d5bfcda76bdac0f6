"""Can a changed query go on from its checkpoint? Said before it is deployed, with what to do where it cannot.

Spark only knows a query's stateful operators once it has planned a batch. So the changed query runs one on a checkpoint that is
thrown away, over the newest record of each partition and into nothing; then the two checkpoints are compared.
"""

import hashlib
import json
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark.errors import PySparkException
from tenacity import retry, retry_if_result, stop_after_delay, wait_fixed

from lockstep import lake
from lockstep.checkpoints import inspection
from lockstep.checkpoints.errors import CheckpointIncompatible, Refused
from lockstep.contracts import CONTRACTS
from lockstep.definition.columns import ddl
from lockstep.definition.version import definition_version
from lockstep.ingest.offsets import offsets_of_topics
from lockstep.live import generations, query
from lockstep.live.checkpoint import Checkpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from lockstep.definition import View
    from lockstep.settings import Settings

_BATCH_SECONDS = 60


@dataclass(frozen=True)
class Verdict:
    """Whether a query can resume.

    Args:
        differences: why not; empty: it can.
        next: the generation to start, where it cannot.
    """

    query: str
    generation: int
    differences: tuple[str, ...]

    @property
    def next(self) -> int:
        return self.generation + 1

    def __str__(self) -> str:
        if not self.differences:
            return f"resumes     {self.query}: generation {self.generation}"
        return (
            f"INCOMPATIBLE {self.query}: {'; '.join(self.differences)}. Begin generation {self.next}: "
            f"`lockstep checkpoints reset {self.query} --to earliest`"
        )


def verdict(spark: "SparkSession", settings: "Settings", view: "View") -> Verdict:
    """Compare the view as it is now with its query's checkpoint."""
    generation = generations.get(settings, view.name)
    location = generation.location(settings)
    begun = Checkpoint(location).last() is not None
    found = differences(spark, settings, location, view, generation.table) if begun else ()
    return Verdict(view.name, generation.number, tuple(found))


def check(spark: "SparkSession", settings: "Settings", view: "View") -> None:
    """Refuse a query that cannot resume.

    Raises:
        CheckpointIncompatible: with the reasons, and the generation to start.
    """
    found = verdict(spark, settings, view)
    if found.differences:
        raise CheckpointIncompatible(
            f"{view.name} has changed, and cannot go on from the checkpoint of generation {found.generation}: "
            f"{'; '.join(found.differences)}. Its query was not started. Begin generation {found.next}: "
            f"`lockstep checkpoints reset {view.name} --to earliest`."
        )


def differences(spark: "SparkSession", settings: "Settings", location: str, view: "View", table: str) -> list[str]:
    """Every reason why the view's query cannot go on from the checkpoint at a location, and from the rows of a live table."""
    columns = _columns_differ(spark, settings, view, table)
    scratch = lake.checkpoint(settings, "_probes", 0).rpartition("/")[0] + f"/{uuid.uuid4().hex}"
    try:
        _run_a_batch(spark, settings, view, scratch)
        return [*columns, *compare(describe(spark, location), describe(spark, scratch))]
    finally:
        filesystem, root = Checkpoint(scratch).open()
        filesystem.create_dir(root, recursive=True)
        filesystem.delete_dir(root)


def _columns_differ(spark: "SparkSession", settings: "Settings", view: "View", table: str) -> list[str]:
    if not lake.exists(settings, table):
        return []
    holds = _columns(lake.read(spark, settings, table))
    gives = _columns(spark.createDataFrame([], ddl(view.live_columns)))
    return [] if holds == gives else [f"its rows have the columns {gives}, but {table} has {holds}"]


def _columns(frame: "DataFrame") -> str:
    return ", ".join(f"{field.name} {field.dataType.simpleString()}" for field in frame.schema.fields)


def _run_a_batch(spark: "SparkSession", settings: "Settings", view: "View", scratch: str) -> None:
    topics = [CONTRACTS[stream].topic for stream in view.streams]
    held = offsets_of_topics(settings, topics)
    newest = {t: {p: max(first, last - 1) for p, (first, last) in b.partitions.items()} for t, b in held.items()}
    if not any(last > newest[t][p] for t, b in held.items() for p, (_, last) in b.partitions.items()):
        raise Refused(f"{', '.join(topics)} hold no record, so {view.name} cannot be tried: produce one first.")
    writer = query.rows(spark, settings, view, newest).writeStream.format("noop").outputMode("update")
    running = writer.option("checkpointLocation", scratch).trigger(processingTime="1 second").start()
    try:
        if not _until_planned(running, Checkpoint(scratch)):
            raise Refused(
                f"{view.name} did not finish a batch within {_BATCH_SECONDS} s: try again when Spark is less busy."
            )
    except PySparkException as error:
        raise CheckpointIncompatible(f"{view.name} does not run at all: {error}") from error
    finally:
        running.stop()


@retry(
    retry=retry_if_result(lambda done: not done),
    wait=wait_fixed(0.2),
    stop=stop_after_delay(_BATCH_SECONDS),
    retry_error_callback=lambda _: False,
)
def _until_planned(running: "StreamingQuery", scratch: Checkpoint) -> bool:
    failure = running.exception()
    if failure is not None:
        raise failure
    return scratch.last() is not None


def describe(spark: "SparkSession", location: str) -> dict[str, Any]:
    """What a restart depends on: ``sources`` (topics, in the query's order), ``operators`` (by number), and ``conf``."""
    checkpoint = Checkpoint(location)
    last = checkpoint.last()
    if last is None:
        raise Refused(f"{location} has no batch that is done.")
    batch = checkpoint.batch(last)
    metadata = spark.read.format("state-metadata").load(location).collect()
    operators: dict[int, dict[str, Any]] = {}
    for row in metadata:
        one = operators.setdefault(row["operatorId"], {"name": row["operatorName"], "stores": {}})
        store = {"partitions": row["numPartitions"], "schema": _schema(spark, location, row)}
        one["stores"][row["stateStoreName"]] = store
    return {"sources": [_topic(source) for source in batch.sources], "operators": operators, "conf": dict(batch.conf)}


def _topic(source: Any) -> str:
    """A source by its topic, and by its partition where it reads that alone."""
    if not isinstance(source, dict):
        return "nothing"
    return ", ".join(sorted(source))


def _schema(spark: "SparkSession", location: str, row: Any) -> str:
    """The types of a store's keys and values; their names do not matter to Spark."""
    if inspection.is_machines(row):
        variables = json.loads(row["operatorProperties"] or "{}").get("stateVariables", [])
        return "; ".join(sorted(f"{v['stateName']}: {v['stateVariableType']}" for v in variables))
    fields = inspection.plain(spark, location, row).schema.fields
    return ", ".join(f"{f.name} {_types(f.dataType)}" for f in fields if f.name in ("key", "value"))


def _types(kind: Any) -> str:
    fields = getattr(kind, "fields", None)
    return f"<{', '.join(_types(f.dataType) for f in fields)}>" if fields is not None else str(kind.simpleString())


def compare(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Every difference that Spark could not go past. Pure."""
    found = []
    if old["sources"] != new["sources"]:
        found.append(
            f"it reads {len(new['sources'])} sources ({', '.join(new['sources'])}), and the checkpoint has "
            f"{len(old['sources'])} ({', '.join(old['sources'])}): partitions or topics were added, left out or reordered"
        )
    for number in sorted(old["operators"].keys() | new["operators"].keys()):
        was, now = old["operators"].get(number), new["operators"].get(number)
        if was is None or now is None:
            what = (
                f"a new stateful operator {now['name']}"
                if now
                else f"no stateful operator {was['name'] if was else ''}"
            )
            found.append(f"it has {what} at place {number}")
        elif was["name"] != now["name"]:
            found.append(f"its stateful operator {number} is {now['name']}, and was {was['name']}")
        else:
            found += _stores(number, was, now)
    return found


def _stores(number: int, was: dict[str, Any], now: dict[str, Any]) -> list[str]:
    found = []
    for store in sorted(was["stores"].keys() | now["stores"].keys()):
        before, after = was["stores"].get(store), now["stores"].get(store)
        if before is None or after is None:
            found.append(f"operator {number} ({was['name']}) {'has' if after else 'has no'} state {store}")
        elif before["schema"] != after["schema"]:
            found.append(
                f"the state of operator {number} ({was['name']}) is {after['schema']}, and was {before['schema']} in {store}"
            )
    return found


def fingerprint(settings: "Settings", view: "View") -> str:
    """Which query a view is: its definition, how it is built into a query, and how many partitions it reads."""
    topics = [CONTRACTS[stream].topic for stream in view.streams]
    held = {topic: len(bounds.partitions) for topic, bounds in offsets_of_topics(settings, topics).items()}
    digest = hashlib.sha256(json.dumps([definition_version(view), sorted(held.items())]).encode())
    digest.update(Path(query.__file__).read_bytes())
    return digest.hexdigest()[:16]
