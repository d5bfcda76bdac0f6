"""What becomes of each mart while dbt runs, in a file of the DAG run: ``<home>/dbt/runs/<dag>/<run>.jsonl``.

The task that runs dbt writes it. Airflow's triggerer reads it, and gives each mart's task its log and its state
(``airflow_marts``). It imports nothing heavy, because a triggerer waits for nobody.
"""

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

if TYPE_CHECKING:
    from lockstep.settings import Settings

log = logging.getLogger(__name__)
_RUNS = "runs"


class State(StrEnum):
    """What became of a mart in a run, in Airflow's words; the later one outweighs those before it."""

    SKIPPED = "skipped"
    SUCCESS = "success"
    FAILED = "failed"


_WEIGHT = list(State)


@dataclass(frozen=True)
class Line:
    """A line of the file.

    Args:
        at: when it was written (seconds since 1970).
        text: for people; dbt's own words where it is dbt's.
        mart: whom it is for; empty: all of them.
        level: of logging.
        state: the mart has ended so, and this is its last line.
        span: the days ``[start, end)`` (ISO) that were built.
        published: whether readers see what was built.
    """

    at: float
    text: str = ""
    mart: str = ""
    level: int = logging.INFO
    state: State | None = None
    span: tuple[str, str] | None = None
    published: bool = False


@dataclass
class Progress:
    """What a run says of its marts. Without a file it is only logged, as by a run that is not Airflow's.

    Args:
        states: what dbt has made of each mart up to now.
        failed: by model or test that failed, the marts that it is about.
    """

    file: Path | None = None
    states: dict[str, State] = field(default_factory=dict)
    failed: dict[str, list[str]] = field(default_factory=dict)

    def say(self, text: str, mart: str = "", level: int = logging.INFO) -> None:
        """Say something of a mart, or of all."""
        self._write(Line(time.time(), text, mart, level))

    def found(self, mart: str, state: State) -> None:
        """Take note of what dbt has made of a mart. What is worst over all days and tests counts."""
        self.states[mart] = max(self.states.get(mart, state), state, key=_WEIGHT.index)

    def built(self, span: tuple[str, str], failed: Sequence[str] = ()) -> None:
        """Take note of days that were built: they are published, or these models and tests have prevented it."""
        if failed:
            text = f"Not published, because of {', '.join(failed)}: readers keep the last good version."
        else:
            text = "Published: readers see the days that were built."
        self._write(Line(time.time(), text, span=span, published=not failed))

    def end(self, mart: str, state: State, text: str) -> None:
        """Say how a mart has ended. Its task ends with it."""
        level = logging.ERROR if state == State.FAILED else logging.INFO
        self._write(Line(time.time(), text, mart, level, state))

    def spans(self) -> dict[tuple[str, str], bool]:
        """The days that the run has built, and whether readers see what it made of them."""
        lines = Reader(self.file).new() if self.file else ()
        return {(line.span[0], line.span[1]): line.published for line in lines if line.span}

    def _write(self, line: Line) -> None:
        log.log(line.level, "%s", f"{line.mart}: {line.text}" if line.mart else line.text)
        if self.file:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with self.file.open("a", encoding="utf-8") as handle:
                handle.write(json.dumps(asdict(line)) + "\n")


class Reader:
    """The lines of a file that another process writes."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._position = 0

    def new(self) -> Iterator[Line]:
        """The whole lines that were written since the last call; none where there is no file yet."""
        try:
            size = self._file.stat().st_size
        except FileNotFoundError:
            return
        if size == self._position:
            return
        with self._file.open("rb") as handle:
            handle.seek(self._position)
            for raw in handle:
                if not raw.endswith(b"\n"):
                    return
                self._position += len(raw)
                found = json.loads(raw)
                state = found.pop("state")
                yield Line(**found, state=State(state) if state else None)


def file_of(settings: "Settings", dag: str, run_id: str) -> Path:
    """The file of a DAG run."""
    return settings.home / "dbt" / _RUNS / quote(dag, safe="") / f"{quote(run_id, safe='')}.jsonl"


def remove_old(settings: "Settings") -> None:
    """Remove the files of runs that Airflow has forgotten (``airflow_hours``)."""
    oldest = time.time() - settings.airflow_hours * 3600
    for file in (settings.home / "dbt" / _RUNS).glob("*/*.jsonl"):
        if file.stat().st_mtime < oldest:
            file.unlink(missing_ok=True)
