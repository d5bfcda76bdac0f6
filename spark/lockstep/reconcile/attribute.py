"""Find out why windows differ: compute what they should say, and what they would say under each known cause.

It costs a recomputation of what differs, and happens only then.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, cast

from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.batch.compute import result
from lockstep.batch.rollup import covered
from lockstep.contracts import CONTRACTS
from lockstep.control.intervals import holders
from lockstep.definition import Keyed, View
from lockstep.definition.events import EXACT_JSON, events
from lockstep.definition.tables import Tables, gold_of
from lockstep.definition.version import definition_version
from lockstep.definition.view import BEGINNING
from lockstep.ledger.ranges import Range, to_where
from lockstep.live.frontier import LiveSnapshot
from lockstep.reconcile import causes
from lockstep.reconcile.causes import Difference, Writers
from lockstep.reconcile.compare import by_key, values_of, window_of
from lockstep.refine.parse import GOOD, parse
from lockstep.version import code_version

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

    from lockstep.settings import Settings

# More keys than these are not looked at one by one.
MOST = 50_000
ANY = timedelta(days=36_500)
Rows = Mapping[str, "DataFrame"]


@dataclass(frozen=True)
class Case:
    """A view of which both layers were compared, and did not agree.

    Args:
        live, batch: the rows that were compared.
        done: the entry of gold that they were compared at.
        seen: what the live rows come from.
    """

    spark: "SparkSession"
    settings: "Settings"
    view: View
    live: "DataFrame"
    batch: "DataFrame"
    done: ledger.Entry
    seen: LiveSnapshot

    @property
    def until(self) -> datetime:
        """Up to when a keyed view's gold goes (UTC)."""
        return datetime.fromisoformat(self.done.until) if self.done.until else BEGINNING

    def silver(self) -> dict[str, "DataFrame"]:
        """The rows that gold's position covers, by stream."""
        return {s: covered(self.spark, self.settings, s, self.done) for s in self.view.streams}

    def silver_of_live(self) -> dict[str, "DataFrame"]:
        """Those that live's position covers."""
        return {s: self._silver(s).where(_below(s, self.seen.position)) for s in self.view.streams}

    def parsed(self, stream: str, where: str) -> "DataFrame":
        """What bronze has up to gold's position, whatever silver made of it, in silver's columns."""
        contract = CONTRACTS[stream]
        position = {contract.topic: {r.partition: r.end for r in self.done.ranges if r.topic == contract.topic}}
        raw = lake.read(self.spark, self.settings, Tables.of(contract).bronze)
        found = parse(raw, contract).where(where).where(_below(stream, position))
        return found.select(*self._silver(stream).columns)

    def _silver(self, stream: str) -> "DataFrame":
        return lake.read(self.spark, self.settings, Tables.of(CONTRACTS[stream]).log)


def attribute(case: Case) -> list[Difference]:
    """Every key that differs, with the causes that could be proved; at most :data:`MOST` of them."""
    found = _differences(case)
    if case.view.upserts:
        # Only keyed views upsert.
        found = _behind(case, cast("Keyed", case.view), found)
    rest = [one for one in found if not one.explained]
    if not rest:
        return found
    expected = _rows(case, rest, case.view, case.silver())
    rest = [causes.accuse(one, expected.get(one.key)) for one in rest]
    held = [
        (row["low"].astimezone(UTC), row["high"].astimezone(UTC))
        for row in holders(case.settings)
        if row["table_name"] in _tables(case.view)
    ]
    rest = [causes.wait_for_replay(one, held) for one in rest]
    written = _written_at(case, rest)
    writers = _writers(case, rest, min(written.values(), default=None))
    rest = [causes.blame_code(one, writers, written.get(one.key)) for one in rest]
    for cause, rows in _causes(case, rest):
        if not causes.still_open(rest):
            break
        given = rows()
        rest = [causes.excuse(one, cause, given) for one in rest]
    return [one for one in found if one.explained] + rest


def _causes(case: Case, rest: list[Difference]) -> Iterator[tuple[str, Callable[[], dict[str, str]]]]:
    view, silver = case.view, case.silver()
    open_ended = replace(view, allowed_lateness=ANY, correct_within=None)
    yield causes.LATE, lambda: _rows(case, rest, open_ended, silver)
    yield causes.DUPLICATE, lambda: _rows(case, rest, view, {s: case.parsed(s, GOOD) for s in view.streams})
    bad = "NOT _marker AND _reason IS NOT NULL"
    yield (
        causes.QUARANTINED,
        lambda: _rows(case, rest, view, {s: silver[s].unionByName(case.parsed(s, bad)) for s in silver}),
    )
    yield causes.NOT_YET_SEEN, lambda: _rows(case, rest, view, case.silver_of_live(), case.seen.until)


def _differences(case: Case) -> list[Difference]:
    keys = by_key(case.live, case.batch, case.view).where("verdict <> 'equal'")
    shown = keys.select("_window", _key(case.view).alias("key"), "verdict", _row("live"), _row("batch")).limit(MOST)
    found = [Difference(_utc(r[0]), r["key"], r["verdict"], r["live"], r["batch"]) for r in shown.collect()]
    if not any(one.kind == "doubled" for one in found):
        return found
    several = case.live.groupBy(_key(case.view).alias("key")).count().where("count > 1")
    twice = {row["key"] for row in several.collect()}
    sides = {True: "live", False: "batch"}
    return [replace(d, doubled=sides[d.key in twice]) if d.kind == "doubled" else d for d in found]


def _behind(case: Case, view: Keyed, found: list[Difference]) -> list[Difference]:
    """Of an upserted view: name the keys that only differ because one layer stands further on in the log."""
    touched = _touched(case, view) if found else None
    if touched is None:
        return found
    keys = [one.key for one in found]
    ahead = _result(case, keys, view, case.silver(), (BEGINNING, case.until), touched)
    live = _result(case, keys, view, case.silver_of_live(), (BEGINNING, case.seen.until), touched)
    return [
        replace(one, live_cause=causes.NOT_YET_SEEN)
        if one.key in ahead.keys() | live.keys()
        and (one.live, one.batch, one.doubled) == (live.get(one.key), ahead.get(one.key), None)
        else one
        for one in found
    ]


def _touched(case: Case, view: Keyed) -> "DataFrame | None":
    """The machines (``_key``) that got something between the positions of the layers; None: both stand at the same."""
    silver, times = case.silver(), (case.seen.until, case.until)
    same = {(r.topic, r.partition): r.end for r in case.done.ranges} == {
        (topic, p): end for topic, ends in case.seen.position.items() for p, end in ends.items()
    }
    if same and times[0] == times[1]:
        return None
    new = events(view, {s: silver[s].where(f"NOT ({_below(s, case.seen.position)})") for s in view.streams})
    low, high = (int(moment.timestamp() * 1_000_000) for moment in (min(times), max(times)))
    waited = events(view, silver).where(F.col("_position").isNull() & (F.col("_time") >= low) & (F.col("_time") < high))
    return new.select("_key").unionAll(waited.select("_key")).distinct()


def _rows(
    case: Case, found: list[Difference], view: View, silver: Rows, until: datetime | None = None
) -> dict[str, str]:
    """What the view says over some rows, for the keys that differ."""
    windows = [one.window_start for one in found]
    low, high = min(windows), max(windows) + timedelta(minutes=1)
    if view.upserts:
        low, high = BEGINNING, until or case.until
    return _result(case, [one.key for one in found], view, silver, (low, high))


def _result(
    case: Case,
    keys: list[str],
    view: View,
    silver: Rows,
    span: tuple[datetime, datetime],
    only: "DataFrame | None" = None,
) -> dict[str, str]:
    rows = result(view, silver, *span, only=only)
    values = F.struct(*values_of(view, rows))
    shown = rows.select(_key(view).alias("key"), F.to_json(values, EXACT_JSON).alias("row"))
    wanted = case.spark.createDataFrame([(key,) for key in keys], "key STRING")
    return {row["key"]: row["row"] for row in shown.join(F.broadcast(wanted), "key", "left_semi").collect()}


def _written_at(case: Case, found: list[Difference]) -> dict[str, datetime]:
    """By key, when live wrote its row; where it has none, when it last wrote into that window, or the one beside it (UTC)."""
    keys = case.spark.createDataFrame([(one.key,) for one in found], "key STRING")
    rows = case.live.select(
        _key(case.view).alias("key"), window_of(case.view).alias("w"), F.col("_updated_at").alias("at")
    )
    own = rows.join(F.broadcast(keys), "key", "left_semi").groupBy("key").agg(F.max("at")).collect()
    windows = sorted((_utc(row[0]), _utc(row[1])) for row in rows.groupBy("w").agg(F.max("at")).collect())
    of_key = {row[0]: _utc(row[1]) for row in own}
    return {one.key: of_key.get(one.key) or causes.beside(windows, one.window_start) for one in found if windows}


def _writers(case: Case, found: list[Difference], since: datetime | None) -> Writers:
    now = definition_version(case.view)
    live: list[tuple[datetime, bool]] = []
    if since:
        for commit in lake.commits(case.settings, f"live.{case.view.name}"):
            if "definition" in commit.record:
                at = datetime.fromtimestamp(commit.timestamp / 1000, UTC)
                live.insert(0, (at, commit.record["definition"] != now))
                if at < since:
                    break
    wrong = any(one.batch_cause == "" for one in found)
    return Writers(live, list(_gold_writers(case, now)) if wrong else [])


def _gold_writers(case: Case, now: str) -> Iterator[tuple[tuple[datetime, datetime] | None, bool]]:
    for commit in lake.commits(case.settings, gold_of(case.view)):
        record = commit.record
        if "ranges" not in record or record.get("span", "") is None:
            continue
        other = record["definition"] != now if "definition" in record else record["code_version"] != code_version()
        span: Any = tuple(datetime.fromisoformat(moment) for moment in record["span"]) if "span" in record else None
        yield span, other
        if span is None:
            return


def _tables(view: View) -> set[str]:
    return {gold_of(view), *(Tables.of(CONTRACTS[s]).log for s in view.streams)}


def _below(stream: str, position: Mapping[str, Mapping[int, int]]) -> str:
    topic = CONTRACTS[stream].topic
    ranges = [Range(topic, "", p, 0, end) for p, end in position.get(topic, {}).items()]
    return to_where(ranges, "_partition", "_offset")


def _key(view: View) -> "Column":
    return F.to_json(F.struct(*view.key), EXACT_JSON)


def _row(side: str) -> "Column":
    return F.to_json(side, EXACT_JSON).alias(side)


def _utc(moment: datetime) -> datetime:
    return moment.replace(tzinfo=UTC)


def describe(found: Iterable[Difference], most: int = 20) -> list[Difference]:
    """The first of them to show, those without a cause first."""
    return sorted(found, key=lambda one: (one.explained, one.window_start, one.key))[:most]
