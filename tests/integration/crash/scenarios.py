"""A crash scenario for each failpoint: data flows, and a process is killed. Then the retries run, and the invariants are checked.

``nth`` says at which pass of the point the process is killed. The gate plays each scenario once, the soak many times.
"""

import json
import os
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from deltalake import DeltaTable
from tenacity import Retrying, retry_if_not_result, stop_after_delay, wait_fixed
from tests.integration.crash.driver import kill, run_until_killed, supervised, task
from tests.integration.crash.flow import (
    END_OF_HOUR,
    Traffic,
    digest,
    drain,
    numbers,
    recover,
    replay,
    rows_of,
    shared_views,
    stream_named,
    violations,
    windows,
)
from tests.integration.crash.watch import COLD, appears, freeze_when, until
from tests.support import retail_oracle

from lockstep import lake
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import Keyed, View
from lockstep.definition.registry import VIEWS
from lockstep.kafka_clients import ensure_topics
from lockstep.live import generations
from lockstep.replay import run
from lockstep.replay.record import find
from lockstep.settings import Settings
from lockstep.stack.stack import Stack

MONTHS_AGO = time.time() - 60 * 86400
ORPHANS = 5000
# Only some are looked at, or the others are gone before they have been counted.
WATCHED = 50


@dataclass
class Scenario:
    """A stream with traffic, and the crashes of what works on it.

    Args:
        view: of windows, in both layers.
        shared: keyed views, which share a live job.
    """

    settings: Settings
    stack: Stack
    stream: Contract
    view: View
    shared: tuple[Keyed, Keyed]
    traffic: Traffic
    directory: Path
    recovered_in: float = 0.0
    is_live: bool = False
    exit_stack: ExitStack = field(default_factory=ExitStack)

    # -- the task is killed -------------------------------------------------------------------------------------------

    def task_dies_at(self, point: str, nth: int, *arguments: str) -> None:
        """P0, P3, P4, P5: at a failpoint. With ``--large``, Spark reads and writes for the task."""
        with self.traffic.flowing():
            run_until_killed(self.stream.name, f"{point}:{nth}", *arguments)

    def task_dies_while_the_server_reads_for_it(self, nth: int) -> None:
        """P1: the server goes on, and writes after the retry has."""
        reading = self.directory / "reading"
        with self.traffic.flowing(most=5), task(self.stream.name, "--large", f"--stall={reading}", f"--nth={nth}"):
            appears(reading)
        self.recovers()
        Path(f"{reading}.go").touch()

    def housekeeping_dies_while_compacting(self) -> None:
        """P9, OPTIMIZE: the new files are being written."""
        bronze = self.table("bronze")
        before = {*bronze.glob("part-*.parquet")}
        with task(self.stream.name, "--maintain") as process:
            _dies_when(lambda: {*bronze.glob("part-*.parquet")} - before, psutil.Process(process.pid))

    def housekeeping_dies_while_vacuuming(self, nth: int) -> None:
        """P9, VACUUM: some of the files that no version knows are gone, and some not yet."""
        bronze = self.table("bronze")
        orphans = [bronze / f"part-00000-left-{n}.parquet" for n in range(ORPHANS)]
        for orphan in orphans:
            orphan.touch()
            os.utime(orphan, (MONTHS_AGO, MONTHS_AGO))
        with task(self.stream.name, "--maintain") as process:
            watched = orphans[:: ORPHANS // WATCHED]
            _dies_when(lambda: sum(not orphan.exists() for orphan in watched) >= nth, psutil.Process(process.pid))
        assert [*bronze.glob("*-left-*")], "too late"
        with task(self.stream.name, "--maintain") as process:
            assert process.wait(120) == 0
        assert not [*bronze.glob("*-left-*")]

    def replay_dies_before_its_promotion(self) -> None:
        """P10: it was approved and has changed nothing; a second try promotes it."""
        replayed, wrong = self._wrong_gold()
        self._replay_dies_at("shadow-approved", replayed)
        assert wrong in windows(self.settings, self.gold), "nothing was promoted yet"
        self._replay_goes_on(replayed)
        assert wrong not in windows(self.settings, self.gold)

    def replay_dies_before_its_record(self) -> None:
        """P11: it was promoted, and a second try records that. It is undone, and another one does it again."""
        replayed, wrong = self._wrong_gold()
        self._replay_dies_at("shadow-promoted", replayed)
        assert wrong not in windows(self.settings, self.gold), "it was promoted"
        self._replay_goes_on(replayed)
        with connect(self.settings, "crash") as spark:
            run.undo(spark, self.settings, replayed, "run", "tester")
        assert wrong in windows(self.settings, self.gold), "what it had replaced is back"
        replay(self.settings, self.view, f"{replayed}-again")

    def _wrong_gold(self) -> tuple[str, tuple[Any, ...]]:
        """Spoil the hour of gold that a replay mends; the id of that replay, and one of the wrong rows."""
        self.traffic.burst(200)
        recover(self.settings, self.stream, self.view)
        minute, page, _ = min(windows(self.settings, self.gold))
        with connect(self.settings, "crash") as spark:
            spark.sql(f"UPDATE {self.gold} SET views = 9999 WHERE window_start < '{END_OF_HOUR:%F %T}'")
        return f"crash-{uuid.uuid4().hex[:8]}", (minute, page, 9999)

    def _replay_dies_at(self, point: str, replayed: str) -> None:
        with self.traffic.flowing():
            run_until_killed(self.stream.name, f"{point}:1", f"--replay={replayed}")

    def _replay_goes_on(self, replayed: str) -> None:
        replay(self.settings, self.view, replayed)
        self.recovers()
        assert find(self.settings, replayed).state == "promoted"

    @property
    def gold(self) -> str:
        """The view's table in the batch layer."""
        return f"gold.{self.view.name}"

    # -- the server is killed, and its supervisor starts it again ------------------------------------------------------

    def server_dies_with_rows_staged(self, nth: int) -> None:
        """P2: Parquet files are there, and the log does not know of them."""
        bronze = self.table("bronze")
        before = {*bronze.glob("part-*.parquet")}

        def new() -> list[Path]:
            return [file for file in {*bronze.glob("part-*.parquet")} - before if _is_complete(file)]

        with self.traffic.flowing(), task(self.stream.name, "--large") as process:
            self.server_dies_when(lambda: len(new()) >= nth, process)
        known = str(DeltaTable(str(bronze)).file_uris()) if DeltaTable.is_deltatable(str(bronze)) else ""
        assert any(file.name not in known for file in new()), "too late"
        self.server_is_back()

    def server_dies_in_a_log_checkpoint(self, nth: int) -> None:
        """P8: a checkpoint of the Delta log is half written."""
        log = self.table("bronze") / "_delta_log"
        before = _numbers(log.glob("*.checkpoint.*"))
        with self.traffic.flowing(), task(self.stream.name, "--large") as process:
            self.server_dies_when(lambda: len(_numbers(log.glob("*.checkpoint.*")) - before) >= nth, process)
        finished = log / "_last_checkpoint"
        last = json.loads(finished.read_text())["version"] if finished.exists() else -1
        assert max(_numbers(log.glob("*.checkpoint.*"))) > last, "too late"
        self.server_is_back()

    def server_dies_under_a_live_query(self, point: str, nth: int) -> None:
        """P6: a batch is in the table, and not in ``commits``. P7: its state is being committed."""
        self.keep_live()
        checkpoint = Path(generations.get(self.settings, self.view.name).location(self.settings))
        log, state = self.table("live") / "_delta_log", checkpoint / "state"
        newest: dict[str, Callable[[], int]] = {
            "P6": lambda: _batch_of_newest(log),
            # The state after a batch has the number of the next one.
            "P7": lambda: max(_numbers(state.glob("*/*/*.changelog*"))) - 1,
        }

        def begun_and_done() -> list[int]:
            return [max(_numbers((checkpoint / name).glob("*"))) for name in ("offsets", "commits")]

        def is_there() -> bool:
            begun, done = begun_and_done()
            return newest[point]() == begun == done + 1 >= before + nth

        with self.traffic.flowing(most=1000):
            until(lambda: _numbers((checkpoint / "commits").glob("*")), within=COLD)
            _, before = begun_and_done()
            self.server_dies_when(is_there)
            self.server_is_back()

    def server_dies_between_two_tables(self) -> None:
        """P6 of a shared job: one micro-batch is in the table of one view, and not in that of the other."""
        self.keep_live()
        first, second = (Path(lake.path(self.settings, f"live.{view.name}")) / "_delta_log" for view in self.shared)
        with self.traffic.flowing(most=1000):
            until(lambda: all(any(log.glob("*.json")) for log in (first, second)), within=COLD)
            self.server_dies_when(lambda: 0 <= _batch_of_newest(second) < _batch_of_newest(first))
            self.server_is_back()

    def keep_live(self) -> None:
        """Run the live service with all views, and start it again whenever it dies, until the scenario is over."""
        if not self.is_live:
            self.exit_stack.enter_context(supervised(self.stream.name, "--live"))
            self.is_live = True

    def prepared(self) -> None:
        """Have a table in several files, whose log gets a checkpoint with each commit."""
        self.traffic.burst(60)
        drain(self.settings, self.stream, [self.view], "before")
        with connect(self.settings, "crash") as spark:
            table = f"bronze.{self.stream.name}"
            spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('delta.checkpointInterval' = '1')")

    # -- the checks ---------------------------------------------------------------------------------------------

    def recovers(self) -> None:
        """Run the tasks again, as the scheduler would, and assert all invariants; of the live table too, where it is kept."""
        # Longer than the shared views allow, so that all of their rows are final.
        self.traffic.time_passes(20)
        views = (self.view, *self.shared)
        began = time.monotonic()
        self.server_is_back()
        recover(self.settings, self.stream, *views)
        self.recovered_in = max(self.recovered_in, time.monotonic() - began)
        broken = violations(self.settings, self.stream, self.view, self.traffic.sent, self.shared)
        assert not broken, broken
        before = digest(self.settings, self.stream, *views)
        recover(self.settings, self.stream, *views)
        assert digest(self.settings, self.stream, *views) == before, "I7: running again has changed a row"
        if self.is_live:
            patiently = Retrying(stop=stop_after_delay(120), wait=wait_fixed(0.5), retry=retry_if_not_result(bool))
            patiently(self.live_is_right)

    def live_is_right(self) -> bool:
        """Whether the live tables have what the oracle says."""
        # Machines look at their timers when something arrives.
        self.traffic.time_passes(1)
        sent = sorted(self.traffic.sent, key=lambda r: (r["partition"], r["offset"]))
        views, _ = retail_oracle.count_page_views(sent)
        expected = retail_oracle.numbered_page_views(sent)
        shared_are_right = (numbers(self.settings, f"live.{view.name}") == expected for view in self.shared)
        return windows(self.settings, f"live.{self.view.name}") == rows_of(views) and all(shared_are_right)

    def table(self, layer: str) -> Path:
        """Where the stream's (or, live, the view's) table of a layer lies."""
        name = self.view.name if layer == "live" else self.stream.name
        return Path(lake.path(self.settings, f"{layer}.{name}"))

    def server_dies_when(self, marked: Callable[[], Any], process: Any = None) -> None:
        """Kill the Spark server with its Python workers, and the task, at a moment when ``marked`` is true."""
        _dies_when(marked, psutil.Process(self.stack.pid("spark")))
        if process is not None:
            kill(process)

    def server_is_back(self) -> None:
        """Wait until the supervisor has started it again."""
        self.stack.wait_healthy("spark", COLD)


@contextmanager
def new_scenario(stack: Stack, directory: Path) -> Iterator[Scenario]:
    """A scenario on a stream of its own, with a topic, and a directory that it makes."""
    settings = stack.settings
    directory.mkdir(parents=True, exist_ok=True)
    stream, view = stream_named(f"page_views_{uuid.uuid4().hex[:8]}")
    ensure_topics(settings, {stream.name: stream})
    CONTRACTS[stream.name], VIEWS[view.name] = stream, view
    traffic = Traffic(settings, stream, random.SystemRandom().randrange(2**32))
    scenario = Scenario(settings, stack, stream, view, shared_views(stream), traffic, directory)
    try:
        with scenario.exit_stack:
            yield scenario
    finally:
        del CONTRACTS[stream.name], VIEWS[view.name]


# At a random pass, for the soak. The upper limits are low: a task passes few times, and writes few files.
BY_POINT: dict[str, Callable[[Scenario, random.Random], None]] = {
    "P0": lambda scenario, dice: scenario.task_dies_at("range-planned", dice.randrange(1, 5)),
    "P1": lambda scenario, dice: scenario.task_dies_while_the_server_reads_for_it(dice.randrange(1, 3)),
    "P2": lambda scenario, dice: scenario.server_dies_with_rows_staged(dice.randrange(1, 4)),
    "P3": lambda scenario, dice: scenario.task_dies_at("bronze-committed", dice.randrange(1, 5)),
    "P4": lambda scenario, dice: scenario.task_dies_at("quarantine-committed", dice.randrange(1, 4)),
    "P5": lambda scenario, dice: scenario.task_dies_at("silver-committed", dice.randrange(1, 5)),
    "P5 machines": lambda scenario, dice: scenario.task_dies_at("machines-saved", dice.randrange(1, 5)),
    "P6": lambda scenario, dice: scenario.server_dies_under_a_live_query("P6", dice.randrange(1, 12)),
    "P6 shared": lambda scenario, _: scenario.server_dies_between_two_tables(),
    "P7": lambda scenario, dice: scenario.server_dies_under_a_live_query("P7", dice.randrange(2, 12)),
    "P8": lambda scenario, dice: scenario.server_dies_in_a_log_checkpoint(dice.randrange(1, 4)),
    "P9 OPTIMIZE": lambda scenario, _: scenario.housekeeping_dies_while_compacting(),
    "P9 VACUUM": lambda scenario, dice: scenario.housekeeping_dies_while_vacuuming(dice.randrange(1, WATCHED // 2)),
    "P10": lambda scenario, _: scenario.replay_dies_before_its_promotion(),
    "P11": lambda scenario, _: scenario.replay_dies_before_its_record(),
}


def _dies_when(marked: Callable[[], Any], process: psutil.Process) -> None:
    """Kill a process and its children at a moment when ``marked`` is true."""
    for frozen in freeze_when(process, marked, within=COLD):
        with suppress(psutil.NoSuchProcess):
            frozen.kill()
    process.wait(30)


def _is_complete(file: Path) -> bool:
    """Whether a Parquet file has been written to its end."""
    return file.stat().st_size > 8 and file.read_bytes().endswith(b"PAR1")


def _numbers(files: Iterable[Path]) -> set[int]:
    """The versions, batches or states that files are of, complete or not."""
    return {int(name) for file in files if (name := file.name.lstrip(".").partition(".")[0]).isdigit()}


def _batch_of_newest(log: Path) -> int:
    """The micro-batch of a live table's newest commit; -1: another writer made it."""
    newest = max(log.glob("*.json"))
    actions = [json.loads(line) for line in newest.read_text().splitlines()]
    return next((action["txn"]["version"] for action in actions if "txn" in action), -1)
