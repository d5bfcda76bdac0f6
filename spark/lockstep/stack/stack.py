"""The embedded stack as one object: ``up``, ``down``, ``health`` and ``pid``, for the command line and for tests."""

import shutil
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Event

from tenacity import RetryError, Retrying, retry_if_exception_type, retry_if_not_result, stop_after_delay, wait_fixed

from lockstep.settings import Settings
from lockstep.stack import doctor, postgres, secrets
from lockstep.stack.errors import StackError, Unhealthy
from lockstep.stack.parts import Part, log_file
from lockstep.stack.registry import PARTS, select
from lockstep.stack.supervisor import Process, Supervisor

# Airflow on two busy cores is the slowest; a healthy start takes a third of it.
PATIENCE = 240.0
STOPPED = Process("STOPPED")
Say = Callable[[str], None]
Check = Callable[[Settings], str]


@dataclass(frozen=True)
class Health:
    """How a part is.

    Args:
        healthy: it runs, and answered as it should.
        state: ``healthy``, ``unhealthy``, ``starting``, ``stopped`` or ``failed`` (its supervisor gave up).
        detail: what it answered, or what is wrong.
        pid: its process, or None.
        uptime: seconds since its last start.
    """

    healthy: bool
    state: str
    detail: str
    pid: int | None = None
    uptime: int = 0


class Stack:
    """The stack of one home. Several can run side by side when their homes and ports differ.

    ``settings`` holds the secrets too, once ``up`` has made them.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = secrets.ensure(settings) if settings.secrets_file.exists() else settings
        self.supervisor = Supervisor(self.settings)

    def up(self, names: list[str] | None = None, say: Say = print) -> None:
        """Start these parts (all when none is named) and those they need, and wait until each is healthy.

        What runs is left alone, so it may be repeated. Parts start as soon as what they need is healthy.

        Raises:
            StackError: something must be mended first, or a part did not become healthy; the message names its log.
        """
        parts = select(names)
        self.settings = secrets.ensure(self.settings)
        self.supervisor = Supervisor(self.settings)
        ours = [part for part in parts if not part.elsewhere(self.settings)]
        doctor.require(self.settings, [part for part in ours if not self.pid(part.name)], say)
        if any(part.launch for part in ours):
            self.supervisor.ensure(list(PARTS.values()))
        given_up, began = Event(), time.monotonic()
        with ThreadPoolExecutor(len(parts)) as threads:
            started: dict[str, Future[None]] = {}
            for part in parts:
                waiting = [started[needed] for needed in part.needs]
                started[part.name] = threads.submit(self._bring_up, part, waiting, given_up, began, say)
        errors = [future.exception() for future in started.values()]
        # Those that only gave up because another failed raise nothing.
        for error in filter(None, errors):
            raise error

    def down(self, say: Say = print) -> None:
        """Stop everything, each part after those that need it; data stays."""
        running = self.supervisor.processes()
        parts = [part for part in reversed(select()) if running.get(part.name, STOPPED).pid]
        with ThreadPoolExecutor(max(len(parts), 1)) as threads:
            stopped: dict[str, Future[None]] = {}
            for part in parts:
                waiting = [future for name, future in stopped.items() if part.name in _all_needs(PARTS[name])]
                stopped[part.name] = threads.submit(self._bring_down, part, waiting, say)
        for future in stopped.values():
            future.result()
        # Also those of a service that does not run, because it failed.
        self.supervisor.kill_orphans()
        self.supervisor.shutdown()

    def reset(self, say: Say = print) -> None:
        """Stop everything, and remove all that this home knows: databases, topics, logs, secrets and its lake."""
        self.down(say)
        for directory in (postgres.base_dir(self.settings), self.settings.home):
            shutil.rmtree(directory, ignore_errors=True)

    def stop(self, name: str) -> None:
        """Stop one part, and what it has started; wait for its end."""
        self.supervisor.stop(name)
        self.supervisor.kill_orphans()

    def health(self, names: list[str] | None = None) -> dict[str, Health]:
        """Ask every part (or these alone) how it is, all at once; steps that are no processes are left out."""
        processes = self.supervisor.processes()
        parts = [part for part in PARTS.values() if part.launch and (not names or part.name in names)]
        with ThreadPoolExecutor(len(parts)) as threads:
            asked = threads.map(lambda part: self._health(part, processes), parts)
            return {part.name: health for part, health in zip(parts, asked, strict=True)}

    def pid(self, name: str) -> int | None:
        """The process of a part: the JVM, the postmaster and so on, not a wrapper; None when it does not run."""
        process = self.supervisor.processes().get(name)
        return process.pid or None if process else None

    def wait_healthy(self, name: str, patience: float = PATIENCE) -> Health:
        """Wait until a part is healthy, as after a crash.

        Raises:
            StackError: it is not, after ``patience`` seconds.
        """
        attempts = Retrying(
            stop=stop_after_delay(patience),
            wait=wait_fixed(0.5),
            retry=retry_if_not_result(lambda health: health.healthy),
        )
        try:
            found: Health = attempts(lambda: self.health([name])[name])
        except RetryError as error:
            last = error.last_attempt.result()
            raise self._failed(PARTS[name], f"is {last.state} after {patience:.0f} s: {last.detail}") from None
        return found

    def _bring_down(self, part: Part, waiting: list[Future[None]], say: Say) -> None:
        wait(waiting)
        self.stop(part.name)
        say(f"{part.name}: stopped")

    def _bring_up(self, part: Part, waiting: list[Future[None]], given_up: Event, began: float, say: Say) -> None:
        for needed in waiting:
            if needed.exception():
                return
        if given_up.is_set():
            return
        try:
            answer = self._start(part, given_up)
        except BaseException:
            given_up.set()
            raise
        say(f"{part.name}: {answer} ({time.monotonic() - began:.0f} s)")

    def _start(self, part: Part, given_up: Event) -> str:
        if not part.launch:
            part.prepare(self.settings)
            return part.check(self.settings)
        if part.elsewhere(self.settings):
            return self._use(part)
        dead = {"FATAL", "STOPPED"}
        if not self.pid(part.name):
            part.prepare(self.settings)
            self.supervisor.start(part.name)
            # One that ran before may have been killed, and is started again.
            dead.add("EXITED")
        answer = self._await(part, part.answers or part.check, given_up, dead)
        if given_up.is_set():
            return answer
        part.settle(self.settings)
        return self._await(part, part.check, given_up, dead) if part.answers else answer

    def _use(self, part: Part) -> str:
        try:
            (part.answers or part.check)(self.settings)
            part.settle(self.settings)
            return f"{part.check(self.settings)} (not ours)"
        except Unhealthy as error:
            raise StackError(
                f"{part.name}, which the settings name, does not answer: {error}", "see to it there."
            ) from error

    def _await(self, part: Part, check: Check, given_up: Event, dead: set[str]) -> str:
        attempts = Retrying(
            stop=stop_after_delay(PATIENCE),
            wait=wait_fixed(0.5),
            retry=retry_if_exception_type(Unhealthy),
            reraise=True,
        )

        def healthy() -> str:
            if given_up.is_set():
                return "not waited for"
            processes = self.supervisor.processes()
            process = processes[part.name]
            if process.state in dead:
                raise self._failed(part, f"does not stay up ({process.detail})")
            if process.state != "RUNNING":
                raise Unhealthy(f"its process is {process.state}")
            return self._ask(part, check, processes)

        try:
            return attempts(healthy)
        except Unhealthy as error:
            raise self._failed(part, f"is not healthy after {PATIENCE:.0f} s: {error}") from error

    def _ask(self, part: Part, check: Check, processes: dict[str, Process]) -> str:
        answer = check(self.settings)
        if part.beat:
            reported = part.beat(self.settings)
            for name in (part.name, *part.needs):
                if name in processes and reported < processes[name].started:
                    raise Unhealthy(f"{part.name} has not reported since the start of {name}")
        return answer

    def _failed(self, part: Part, how: str) -> StackError:
        log = log_file(self.settings, part.name)
        tail = "\n".join(f"  | {line}" for line in doctor.last_lines(log, 8))
        what = f"{part.name} {how}. The end of its log:\n{tail}"
        return StackError(what, f"read {log} (`lockstep logs {part.name}`).")

    def _health(self, part: Part, processes: dict[str, Process]) -> Health:
        if part.elsewhere(self.settings):
            return self._asked(lambda: part.check(self.settings))
        process = processes.get(part.name)
        if process is None or process.state in ("STOPPED", "STOPPING"):
            return Health(False, "stopped", "not running")
        if process.state in ("FATAL", "UNKNOWN"):
            return Health(False, "failed", process.detail)
        pid, uptime = process.pid or None, int((datetime.now(UTC) - process.started).total_seconds())
        if process.state != "RUNNING":
            return Health(False, "starting", f"{process.state.lower()} {process.detail}".rstrip(), pid, uptime)
        return self._asked(lambda: self._ask(part, part.check, processes), pid, uptime)

    @staticmethod
    def _asked(ask: Callable[[], str], pid: int | None = None, uptime: int = 0) -> Health:
        try:
            return Health(True, "healthy", ask(), pid, uptime)
        except Unhealthy as error:
            return Health(False, "unhealthy", str(error), pid, uptime)


def _all_needs(part: Part) -> set[str]:
    return {name for needed in part.needs for name in (needed, *_all_needs(PARTS[needed]))}
