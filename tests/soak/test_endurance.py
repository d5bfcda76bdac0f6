"""Hours with everything on: all views in both layers, Airflow's DAGs, the shop open, and each part killed at random moments.

Nothing is done by hand. At the end live = batch for every view and the sums hold. After the first half hour neither the memory
has grown, nor the number of open files, nor the disk that is not data, nor the number of copies of what the machines of views
remember. What they remember grows for as long as their definitions say: ``page_views_enriched`` has the views of 60 days, and at
the end exactly those.
"""

import json
import os
import random
import signal
import stat
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter, defaultdict
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep import lake, ledger
from lockstep.airflow_api import connected
from lockstep.batch.saved_machines import SavedMachines
from lockstep.definition.tables import gold_of
from lockstep.lake.small_commits import collect
from lockstep.live import progress
from lockstep.stack.services import inherited, run_dir
from lockstep.status.gather import gather
from shop.views.page_views_enriched import VIEW

MINUTES = float(os.environ.get("LOCKSTEP_SOAK_ENDURANCE_MINUTES", "120"))
KILLS = int(os.environ.get("LOCKSTEP_SOAK_ENDURANCE_KILLS", "3"))
RATE = 100
PARTS = (
    "spark",
    "live",
    "kafka",
    "postgres",
    "connect",
    "airflow-scheduler",
    "airflow-dag-processor",
    "airflow-triggerer",
    "airflow-api-server",
)
# In samples of ``_look``. Until then caches fill, and checkpoints get as many micro-batches as they keep.
HALF_AN_HOUR = 60
# What a burst of commits, or of log lines, may add for a while.
GROWTH = 1.15
# The files of RocksDB, and of saved machines.
STATES = {".sst", ".parquet"}


# A thread that ends takes its samples with it.
@pytest.mark.filterwarnings("error::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.timeout(3 * 3600)
def test_everything_stays_on_for_hours_although_each_part_is_killed(demo, report):
    seed = random.SystemRandom().randrange(2**32)
    stopping, used = threading.Event(), defaultdict(list)
    threads = [
        threading.Thread(target=_trade, args=(demo.settings, stopping)),
        threading.Thread(target=_look, args=(demo.stack, stopping, used)),
    ]
    for thread in threads:
        thread.start()
    try:
        longest = _kill_each(demo.stack, random.Random(seed), report)
    finally:
        stopping.set()
        for thread in threads:
            thread.join()
    began = time.monotonic()
    status = _settled(demo)
    dropped = sum(
        query["dropped_rows"]
        for commit in lake.commits(demo.settings, progress.TABLE.name)
        for query in commit.record.get("progress", {}).values()
    )
    tenths = "; ".join(f"{name}: {_tenths(samples)}" for name, samples in used.items())
    settling = time.monotonic() - began
    report(
        f"| endurance, {MINUTES:.0f} minutes | {seed} | {KILLS} of each of {len(PARTS)} parts | at most {longest:.0f}, in the "
        f"end {settling:.0f} | {sum(s.bronze for s in status.streams)} in bronze, {RATE} a second | {status.ok} |"
    )
    report(f"\nMB, open files, and copies, by tenths of the time: {tenths}\n")
    report(f"Problems: {status.problems}; rows that the engine dropped: {dropped}\n")
    assert status.problems == []
    assert all(stream.adds_up for stream in status.streams)
    assert {view.name: view.sample for view in status.views if view.unexplained} == {}
    assert dropped == 0, "the engine must never decide what is late"
    flat = ("memory", "open files", "disk without states", "copies of states")
    assert [name for name in flat if _grew(used[name][HALF_AN_HOUR:])] == [], tenths
    assert _page_views_remembered(demo.settings) == collect(demo.settings, gold_of(VIEW), "true", ["event_id"]).num_rows


def _trade(settings, stopping):
    """Keep the shop open. It ends when its database or its broker does, and is opened again, as the supervisor does it."""
    command = [sys.executable, "-P", "-m", "lockstep.cli", "simulate", "--live", f"--rate={RATE}"]
    while not stopping.is_set():
        shop = subprocess.Popen(command, env=inherited(settings), cwd=settings.home)
        while shop.poll() is None and not stopping.wait(1):
            pass
        shop.terminate()
        shop.wait()


def _look(stack, stopping, used):
    """Every half minute, in MB: the memory (PSS) of all processes, and by service; the disk that is not data, and each folder.

    The states of views are a part of that disk: files of saved machines and of RocksDB, which have what the views remember some
    times over.
    """
    supervisor = psutil.Process(int((run_dir(stack.settings) / "supervisord.pid").read_text()))
    home, root = stack.settings.home, Path(stack.settings.lake.removeprefix("file://"))
    folders = (root / "_checkpoints", root / "_machines", home / "tmp", home / "run")
    while not stopping.wait(30):
        memory = _memory(stack, supervisor)
        found = {folder.name: _files(folder) for folder in folders}
        sizes = {name: sum(files.values()) for name, files in found.items()}
        disk = sum(sizes.values())
        states = sum(size for files in found.values() for path, size in files.items() if path.suffix in STATES)
        remembered = sum(_remembered(folder) for folder in (root / "_machines").iterdir())
        sizes |= {"disk": disk, "disk without states": disk - states, "remembered": remembered}
        sizes |= {"memory": sum(memory.values()), **memory}
        used["open files"].append(_open_files(supervisor))
        for name, size in sizes.items():
            used[name].append(size / 2**20)
        used["copies of states"].append(states / max(remembered, 1))


def _memory(stack, supervisor):
    """Of the JVM of each service, and of its other processes."""
    names = {process.pid: name for name, process in stack.supervisor.processes().items()}
    found = Counter()
    for process in supervisor.children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):  # it has just ended, or is about to
            own = next((names[p.pid] for p in (process, *process.parents()) if p.pid in names), "orphans")
            kind = "JVM" if process.name() == "java" else "others"
            found[f"{own}, {kind}"] += process.memory_full_info().pss
    return found


def _open_files(supervisor):
    """How many files and connections all processes have open."""
    found = 0
    for process in supervisor.children(recursive=True):
        with suppress(psutil.NoSuchProcess, psutil.AccessDenied):  # it has just ended, or is about to
            found += process.num_fds()
    return found


def _files(folder):
    """Its files and their sizes. RocksDB's copies of its own files are links to them, and take nothing more."""
    files = {}
    for parent, _, names in os.walk(folder):
        for path in (Path(parent, name) for name in names):
            try:
                found = path.lstat()
            except FileNotFoundError:  # it has just been removed
                continue
            if stat.S_ISREG(found.st_mode):
                files[found.st_dev, found.st_ino] = path, found.st_size
    return dict(files.values())


def _remembered(folder):
    """The size of what a view remembers, once: the last file of its machines that is whole for certain."""
    files = {}
    for path in folder.glob("*.parquet"):
        with suppress(FileNotFoundError):  # it has just been removed
            found = path.stat()
            files[found.st_mtime] = found.st_size
    return files[sorted(files)[-2]] if len(files) > 1 else 0


def _kill_each(stack, dice, report):
    """Kill the parts at random moments, each ``KILLS`` times, and wait for each to come up again; the longest time of that."""
    ends = time.monotonic() + 60 * MINUTES
    parts = [part for part in PARTS for _ in range(KILLS)]
    dice.shuffle(parts)
    # The last tenth is for what the last kill has left to do.
    moments = sorted(dice.uniform(0, 54 * MINUTES) for _ in parts)
    longest, began = 0.0, time.monotonic()
    again = Retrying(stop=stop_after_delay(60), wait=wait_fixed(0.2), retry=retry_if_result(bool))
    for part, moment in zip(parts, moments, strict=True):
        # The moment of the kill is what is random here.
        time.sleep(max(0.0, began + moment - time.monotonic()))
        killed, killed_at = stack.wait_healthy(part).pid, time.monotonic()
        os.kill(killed, signal.SIGKILL)
        again(lambda part=part, killed=killed: stack.pid(part) in (None, killed))
        stack.wait_healthy(part)
        took = time.monotonic() - killed_at
        report(f"| minute {(killed_at - began) / 60:.0f} | | {part} | {took:.0f} | | |")
        longest = max(longest, took)
    time.sleep(max(0.0, ends - time.monotonic()))
    return longest


def _settled(demo):
    """The status once nothing lags behind any more, and everything was compared after that."""
    lags = Retrying(stop=stop_after_delay(1800), wait=wait_fixed(5), retry=retry_if_result(bool))
    lags(lambda: any(n for s in _status(demo).streams for n in s.lag.values()))
    with connected(demo.settings) as airflow:
        before = airflow.runs("reconcile", limit=1)[0].run_id
        airflow.trigger("reconcile")
        lags(lambda: not _compared(airflow, before))
    return _status(demo)


def _compared(airflow, before):
    newest = airflow.runs("reconcile", limit=1)[0]
    return newest.run_id != before and newest.ended


def _status(demo):
    return gather(demo.settings, {name: h.state for name, h in demo.stack.health().items()})


def _grew(samples):
    quarter = len(samples) // 4
    return quarter > 0 and statistics.median(samples[-quarter:]) > GROWTH * statistics.median(samples[:quarter])


def _tenths(samples):
    size = max(1, len(samples) // 10)
    return ", ".join(f"{statistics.median(samples[at : at + size]):.4g}" for at in range(0, len(samples), size))


def _page_views_remembered(settings):
    """How many page views the machines of ``page_views_enriched`` remember after the last roll-up."""
    entry = ledger.latest(settings, gold_of(VIEW))
    saved = SavedMachines(settings, VIEW.name).load(entry.machines).to_pylist()
    return sum(len(json.loads(row["_machine"])) for row in saved if row["_bucket"] is not None)
