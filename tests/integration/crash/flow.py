"""Data that flows while processes are killed, and an independent check of the tables afterwards.

The check shares nothing with what it checks: delta-rs reads the tables, and plain Python says what must be in them.
"""

import base64
import hashlib
import json
import random
import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import timedelta
from typing import Any

from deltalake import DeltaTable
from pyspark import cloudpickle
from tenacity import Retrying, stop_after_attempt, wait_fixed
from tests.support import retail_oracle
from tests.support.shop import START, Shop

from lockstep import lake
from lockstep.batch.prepare import prepare
from lockstep.batch.rollup import roll_up
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import Event, Input, Keyed, View
from lockstep.definition.registry import VIEWS
from lockstep.ingest.bronze import ingest
from lockstep.refine.silver import refine
from lockstep.replay import run
from lockstep.replay.parse import parse
from lockstep.settings import Settings

# What the server runs goes there as code: it does not have the tests.
cloudpickle.register_pickle_by_value(sys.modules[__name__])

# Of the first hour of the traffic, which is replayed. On a slow machine there is more than an hour of it.
END_OF_HOUR = START + timedelta(hours=1)
OUTCOMES = ("silver", "duplicates", "quarantined", "markers")


def stream_named(name: str) -> tuple[Contract, View]:
    """A stream like page_views and its view, as the fixtures of the same names make them."""
    contract = replace(CONTRACTS["page_views"], name=name, topic=name)
    return contract, replace(VIEWS["page_views_per_minute"], name=f"per_minute_{name[-8:]}", input=name)


def shared_views(stream: Contract) -> tuple[Keyed, Keyed]:
    """Two views that number the events of each user. They share a live job, which writes a table of each."""
    first = Keyed(
        name=f"first_{stream.name[-8:]}",
        columns={"event_id": "STRING", "number": "BIGINT"},
        key=("event_id",),
        # Longer than any event of the traffic takes: each is counted.
        allowed_lateness=timedelta(seconds=10),
        inputs=(Input(stream.name, "user_id", ("event_id",)),),
        process=_numbered,
    )
    return first, replace(first, name=f"second_{stream.name[-8:]}")


def _numbered(state: Any, event: Event) -> tuple[Any, list[dict[str, Any]]]:
    number = (state or 0) + 1
    return number, [{"event_id": event.data["event_id"], "number": number}]


def table_named(name: str) -> Contract:
    """A stream of changes like users."""
    return replace(CONTRACTS["users"], name=name, topic=name)


def drain(settings: Settings, stream: Contract, views: Sequence[View], run_id: str) -> None:
    """Ingest, refine and roll up, until nothing is behind."""
    with connect(settings, "crash") as spark:
        while True:
            entries = [ingest(spark, settings, stream, run_id), refine(spark, settings, stream, run_id)]
            prepared = prepare(settings, views, lambda: nullcontext(spark))
            entries += [roll_up(spark, settings, view, run_id, prepared.get(view.name)) for view in views]
            if not any(entries):
                return


def recover(settings: Settings, stream: Contract, *views: View) -> None:
    """What the scheduler does after a crash, and nothing more: it runs the tasks again, at most three times."""
    Retrying(stop=stop_after_attempt(4), wait=wait_fixed(1), reraise=True)(drain, settings, stream, views, "retry")


def replay(settings: Settings, view: View, name: str) -> None:
    """Replay the view's first hour; a replay that has begun goes on from its stage."""
    hour = {"from": START.isoformat(), "to": END_OF_HOUR.isoformat()}
    wanted = parse({"reason": "a crash test", "views": [view.name]} | hour)
    with connect(settings, "crash") as spark:
        run.open_replay(spark, settings, wanted, "tester", "run", name)
        run.compute(spark, settings, name, "run")
        run.compare(spark, settings, name, "run")
        run.approve(spark, settings, name, "run", "tester")
        run.promote(spark, settings, name, "run")


class Traffic(Shop):
    """Page views with duplicates, malformed and late records. It remembers every record that the broker acknowledged."""

    def __init__(self, settings: Settings, contract: Contract, seed: int) -> None:
        super().__init__(settings, contract)
        self.sent: list[dict[str, Any]] = []
        self.seed, self._dice = seed, random.Random(seed)
        self._second = 0.0

    def burst(self, size: int) -> None:
        """Send this many events, of which some are bad, late or repeated; and wait until they are acknowledged."""
        for _ in range(size):
            self._second += self._dice.random()
            user, event_id = f"u{self._dice.randrange(20)}", f"e{self._dice.randrange(2**48)}"
            page, late = self._dice.choice(["/", "/cart", "/item"]), self._dice.random() < 0.05
            after = 5.5 if late else 0.5
            self.view(event_id, self._second, arrives_after=after, user_id=user, page=page)
            if self._dice.random() < 0.1:
                self.view(event_id, self._second, arrives_after=after + 1, user_id=user, page=page)
            if self._dice.random() < 0.05:
                self.raw(b"{broken", self._second, key=user)
        self.time_passes(0)

    def time_passes(self, seconds: float) -> None:
        """Nothing happens for so long: each partition says so."""
        self._second += seconds
        self.heartbeat(self._second)
        self.flush()

    @contextmanager
    def flowing(self, most: int = 100) -> Iterator[None]:
        """Send bursts, ``most`` of them, for as long as the block lasts; the first is there when it begins."""
        stop = threading.Event()

        def send() -> None:
            for _ in range(most):
                self.burst(20)
                if stop.wait(0.1):
                    return

        self.burst(60)
        sender = threading.Thread(target=send)
        sender.start()
        try:
            yield
        finally:
            stop.set()
            sender.join()

    def _delivered(self, error: Any, message: Any) -> None:
        super()._delivered(error, message)
        self.sent.append(
            {
                "partition": message.partition(),
                "offset": message.offset(),
                "arrival": message.timestamp()[1],
                "value": _base64(message.value()),
                "is_heartbeat": message.key() is None,
            }
        )


def _base64(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def violations(
    settings: Settings, stream: Contract, view: View, sent: list[dict[str, Any]], numbering: Sequence[Keyed] = ()
) -> list[str]:
    """Every invariant of ``docs/operations/failpoints.md`` that does not hold, in a sentence; none when all do.

    Args:
        numbering: views like those of :func:`shared_views`, all rows of which are final.
    """
    sent = sorted(sent, key=lambda r: (r["partition"], r["offset"]))
    views, outcomes = retail_oracle.count_page_views(sent)
    bronze = _places(settings, f"bronze.{stream.name}", "")
    silver = _places(settings, f"silver.{stream.name}", "_")
    quarantine = _places(settings, f"quarantine.{stream.name}", "_")
    ids = Counter(row["event_id"] for row in _rows(settings, f"silver.{stream.name}", "event_id"))
    sums = _sums(settings, f"silver.{stream.name}")
    expected = {outcome: outcomes.get(outcome, 0) for outcome in OUTCOMES}
    broken = {
        "I1: acknowledged, but not in bronze": {(r["partition"], r["offset"]) for r in sent} - bronze.keys(),
        "I1: in bronze, but never acknowledged": bronze.keys() - {(r["partition"], r["offset"]) for r in sent},
        "I1: in bronze with another value or time than was sent": _altered(settings, stream, sent),
        "I2: twice in bronze": {place for place, n in bronze.items() if n > 1},
        "I2: twice in silver": {place for place, n in silver.items() if n > 1},
        "I2: twice in quarantine": {place for place, n in quarantine.items() if n > 1},
        "I3: ids that silver has twice": {name for name, n in ids.items() if n > 1},
        "I4: rows of silver, and should be": _unequal(silver.total(), expected["silver"]),
        "I4: rows of quarantine, and should be": _unequal(quarantine.total(), expected["quarantined"]),
        "I4: the ledger's sums, and should be": _unequal(sums, expected),
        "I4: bronze's rows, and the sum of what became of them": _unequal(bronze.total(), sum(sums.values())),
        "I5: in silver with other values than were sent": _misread(settings, stream, sent),
        "I6: gold, and what the oracle says": _unequal(windows(settings, f"gold.{view.name}"), rows_of(views)),
    }
    if numbering:
        expected_numbers = retail_oracle.numbered_page_views(sent)
        broken |= {
            f"I6: gold of {one.name}, and what the oracle says": _unequal(
                numbers(settings, f"gold.{one.name}"), expected_numbers
            )
            for one in numbering
        }
    return [f"{invariant}: {str(rows)[:300]}" for invariant, rows in broken.items() if rows]


def _altered(settings: Settings, stream: Contract, sent: list[dict[str, Any]]) -> set[tuple[int, int]]:
    """Where bronze has other bytes, or another timestamp, than the broker acknowledged."""
    acknowledged = {(r["partition"], r["offset"]): (r["value"], r["arrival"]) for r in sent}
    rows = _rows(settings, f"bronze.{stream.name}", "partition", "offset", "value", "timestamp")
    return {
        place
        for row in rows
        if (place := (row["partition"], row["offset"])) in acknowledged
        and acknowledged[place] != (_base64(row["value"]), round(row["timestamp"].timestamp() * 1000))
    }


def _misread(settings: Settings, stream: Contract, sent: list[dict[str, Any]]) -> set[tuple[int, int]]:
    """Where a row of silver has another value in one of the contract's columns than the record has."""
    payloads = retail_oracle.silver_page_views(sent)
    rows = _rows(settings, f"silver.{stream.name}", "_partition", "_offset", *stream.columns)
    texts = [name for name, kind in stream.columns.items() if kind == "STRING"]
    return {
        place
        for row in rows
        if (payload := payloads.get(place := (row["_partition"], row["_offset"]))) is None
        or row[stream.event_time] != payload["at"]
        or any(row[name] != payload.get(name) for name in texts)
    }


def _unequal(actual: object, expected: object) -> tuple[object, object] | None:
    return None if actual == expected else (actual, expected)


def _rows(settings: Settings, table: str, *columns: str) -> list[dict[str, Any]]:
    place = lake.path(settings, table)
    return DeltaTable(place).to_pyarrow_table(columns=[*columns]).to_pylist() if DeltaTable.is_deltatable(place) else []


def _places(settings: Settings, table: str, prefix: str) -> "Counter[tuple[int, int]]":
    names = f"{prefix}partition", f"{prefix}offset"
    return Counter((row[names[0]], row[names[1]]) for row in _rows(settings, table, *names))


def windows(settings: Settings, table: str) -> Counter[Any]:
    """The rows (minute, page, views) of a table of the view's windows, and how often each is there."""
    rows = _rows(settings, table, "window_start", "page", "views")
    return Counter((row["window_start"], row["page"], row["views"]) for row in rows)


def numbers(settings: Settings, table: str) -> list[tuple[str, int]]:
    """The rows (event_id, number) of a table of :func:`shared_views`, sorted."""
    return sorted((row["event_id"], row["number"]) for row in _rows(settings, table, "event_id", "number"))


def rows_of(views: Counter[Any]) -> Counter[Any]:
    """The rows that a table must have, each once, for these views by (minute, page)."""
    return Counter((minute, page, count) for (minute, page), count in views.items())


def _sums(settings: Settings, table: str) -> dict[str, int]:
    """What silver's newest commit says became of all rows so far."""
    if not DeltaTable.is_deltatable(lake.path(settings, table)):
        return dict.fromkeys(OUTCOMES, 0)
    history = DeltaTable(lake.path(settings, table)).history()
    records = (json.loads(commit.get("userMetadata") or "{}") for commit in history)
    newest = next(record for record in records if "counts" in record)
    return {outcome: newest["before"].get(outcome, 0) + newest["counts"][outcome] for outcome in OUTCOMES}


def digest(settings: Settings, stream: Contract, *views: View) -> str:
    """One value for the content of all the stream's tables, whatever the order and the files of the rows."""
    total = hashlib.sha256()
    of_stream = [f"{layer}.{stream.name}" for layer in ("bronze", "silver", "quarantine")]
    for table in (*of_stream, *(f"gold.{view.name}" for view in views)):
        place = lake.path(settings, table)
        names = sorted(field.name for field in DeltaTable(place).schema().fields)
        total.update("\n".join(sorted(str(row) for row in _rows(settings, table, *names))).encode())
    return total.hexdigest()
