"""What becomes of each mart and its tests while dbt runs, in a file of the DAG run: ``<home>/dbt/runs/<dag>/<run>.jsonl``.

The task that runs dbt writes it. Airflow's triggerer reads it, and gives each mart's tasks their log and their state
(``airflow_marts``). It imports nothing heavy, because a triggerer waits for nobody.
"""

import json
import logging
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

if TYPE_CHECKING:
    from lockstep.settings import Settings

log = logging.getLogger(__name__)
_RUNS = "runs"


class Kind(StrEnum):
    """The two tasks of a mart, named by dbt's commands."""

    RUN = "run"
    TEST = "test"


class Box(NamedTuple):
    """A task of a mart: that of its model, or that of its tests."""

    mart: str
    kind: Kind


class State(StrEnum):
    """What became of a box in a run, in Airflow's words; the later one outweighs those before it."""

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
        box: whom it is for; None: all of them.
        level: of logging.
        state: the box has ended so, and this is its last line.
        span: the days ``[start, end)`` (ISO) that were built.
        published: whether readers see what was built.
    """

    at: float
    text: str = ""
    box: Box | None = None
    level: int = logging.INFO
    state: State | None = None
    span: tuple[str, str] | None = None
    published: bool = False


@dataclass
class Progress:
    """What a run says of its marts. Without a file it is only logged, as by a run that is not Airflow's.

    Args:
        states: what dbt has made of each box up to now.
        failed: by model or test that failed, the boxes that it is about.
    """

    file: Path | None = None
    states: dict[Box, State] = field(default_factory=dict)
    failed: dict[str, list[Box]] = field(default_factory=dict)

    def say(self, text: str, box: Box | None = None, level: int = logging.INFO) -> None:
        """Say something to a box, or to all."""
        self._write(Line(time.time(), text, box, level))

    def found(self, box: Box, state: State) -> None:
        """Take note of what dbt has made of a model, or of a test. What is worst over all days and tests counts."""
        self.states[box] = max(self.states.get(box, state), state, key=_WEIGHT.index)

    def built(self, span: tuple[str, str], failed: Sequence[str] = ()) -> None:
        """Take note of days that were built: they are published, or these models and tests have prevented it."""
        if failed:
            text = f"Not published, because of {', '.join(failed)}: readers keep the last good version."
        else:
            text = "Published: readers see the days that were built."
        self._write(Line(time.time(), text, span=span, published=not failed))

    def end(self, box: Box, state: State, text: str) -> None:
        """Say how a box has ended. The task ends with it."""
        level = logging.ERROR if state == State.FAILED else logging.INFO
        self._write(Line(time.time(), text, box, level, state))

    def spans(self) -> dict[tuple[str, str], bool]:
        """The days that the run has built, and whether readers see what it made of them."""
        lines = Reader(self.file).new() if self.file else ()
        return {(line.span[0], line.span[1]): line.published for line in lines if line.span}

    def _write(self, line: Line) -> None:
        log.log(line.level, "%s", f"{'.'.join(line.box)}: {line.text}" if line.box else line.text)
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
                state, box = found.pop("state"), found.pop("box")
                yield Line(
                    **found, state=State(state) if state else None, box=Box(box[0], Kind(box[1])) if box else None
                )


def file_of(settings: "Settings", dag: str, run_id: str) -> Path:
    """The file of a DAG run."""
    return settings.home / "dbt" / _RUNS / quote(dag, safe="") / f"{quote(run_id, safe='')}.jsonl"


def remove_old(settings: "Settings") -> None:
    """Remove the files of runs that Airflow has forgotten (``airflow_hours``)."""
    oldest = time.time() - settings.airflow_hours * 3600
    for file in (settings.home / "dbt" / _RUNS).glob("*/*.jsonl"):
        if file.stat().st_mtime < oldest:
            file.unlink(missing_ok=True)
