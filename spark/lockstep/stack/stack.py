"""The embedded stack as one object: ``up``, ``down``, ``health`` and ``pid``, for the command line and for tests."""

import shutil
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from threading import Event

from tenacity import RetryError, Retrying, retry_if_exception_type, retry_if_not_result, stop_after_delay, wait_fixed

from lockstep.settings import Settings
from lockstep.stack import doctor, postgres, secrets, started
from lockstep.stack.errors import StackError, Unhealthy
from lockstep.stack.registry import known, named, select
from lockstep.stack.services import Service, log_file
from lockstep.stack.supervisor import Process, Supervisor

# Seconds until a service must be healthy. Airflow on two busy cores is the slowest; a healthy start takes a third of this.
TIMEOUT = 240.0
STOPPED = Process("STOPPED")
Say = Callable[[str], None]
Check = Callable[[Settings], str]


@dataclass(frozen=True)
class Health:
    """The state of a service.

    Args:
        healthy: its process runs, and it passed its check.
        state: ``healthy``, ``unhealthy``, ``starting``, ``stopped`` or ``failed`` (the supervisor does not start it any more).
        detail: what the check found, or what is wrong.
        pid: its process, or None.
    """

    healthy: bool
    state: str
    detail: str
    pid: int | None = None


class Stack:
    """The stack of one home. Several can run side by side when their homes and ports differ.

    ``settings`` holds the secrets too, once ``up`` has made them.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = secrets.ensure(settings) if settings.secrets_file.exists() else settings
        self.supervisor = Supervisor(self.settings)
        self.services = known()

    def up(self, names: list[str] | None = None, say: Say = print) -> None:
        """Start these services (all when no name is given) and those they need, and wait until each is healthy.

        A service that runs is left alone, so it may be repeated. A service starts as soon as those that it needs are healthy.

        Raises:
            StackError: a person must fix something first, or a service did not become healthy. The message names its log.
        """
        services = select(names)
        self.settings = secrets.ensure(self.settings)
        self.supervisor = Supervisor(self.settings)
        ours = [service for service in services if not service.external(self.settings)]
        doctor.require(self.settings, [service for service in ours if not self.pid(service.name)], say)
        if any(service.launch for service in ours):
            self.supervisor.ensure(list(self.services.values()))
        cancelled, began = Event(), time.monotonic()
        with ThreadPoolExecutor(len(services)) as threads:
            starts: dict[str, Future[None]] = {}
            for service in services:
                needed = [starts[name] for name in service.needs]
                starts[service.name] = threads.submit(self._bring_up, service, needed, cancelled, began, say)
        # A service that was not started because another one failed raises nothing.
        for error in filter(None, (future.exception() for future in starts.values())):
            raise error

    def down(self, names: list[str] | None = None, say: Say = print) -> None:
        """Stop these services (all when no name is given) and those that need them, which stop first. The data stays.

        Raises:
            StackError: there is no service of that name.
        """
        running, chosen = self.supervisor.processes(), {service.name for service in named(names or [])}
        ordered = reversed(select([*self.services]))
        running_services = [service for service in ordered if running.get(service.name, STOPPED).pid]
        services = [s for s in running_services if not chosen or chosen & {s.name, *self._all_needs(s.name)}]
        with ThreadPoolExecutor(max(len(services), 1)) as threads:
            stopped: dict[str, Future[None]] = {}
            for service in services:
                users = [future for name, future in stopped.items() if service.name in self._all_needs(name)]
                stopped[service.name] = threads.submit(self._bring_down, service, users, say)
        for future in stopped.values():
            future.result()
        # Also those of a service that does not run, because it failed.
        self.supervisor.kill_orphans()
        if not chosen:
            self.supervisor.shutdown()

    def restart(self, names: Iterable[str], say: Say = print) -> None:
        """Stop those of the services that run, and those that need them, and start them with the settings as they are now."""
        if affected := self.with_users(names):
            self.down([*names], say)
            self.up(affected, say)

    def with_users(self, names: Iterable[str]) -> list[str]:
        """Those of the services that run, and the running ones that need them, in the order in which they start."""
        chosen, running = {*names}, self.supervisor.processes()
        ordered = (s.name for s in select([*self.services]) if running.get(s.name, STOPPED).pid)
        return [name for name in ordered if chosen & {name, *self._all_needs(name)}]

    def reset(self, say: Say = print) -> None:
        """Stop everything, and remove all data of this home: databases, topics, logs, secrets and the lake in it."""
        self.down(say=say)
        for directory in (postgres.base_dir(self.settings), self.settings.home):
            shutil.rmtree(directory, ignore_errors=True)

    def stop(self, name: str) -> None:
        """Stop one service and every process that it has started, and wait until they have ended."""
        self.supervisor.stop(name)
        self.supervisor.kill_orphans()

    def start_failed(self, say: Say = print) -> None:
        """Start the services again that supervisord has given up, because they ended too often right after their start.

        What ended them, such as a full disk, may be over.
        """
        for name, process in self.supervisor.processes().items():
            if process.state == "FATAL":
                say(f"{name}: had ended too often right after its start, and is started again")
                self.supervisor.start(name)

    def health(self, names: list[str] | None = None) -> dict[str, Health]:
        """Check every service, or these, all at once.

        Steps, which have no process, are left out, and so are services that start on demand and that nobody has started.
        """
        processes = self.supervisor.processes()
        wanted = names or [n for n, s in self.services.items() if not s.on_demand or processes.get(n, STOPPED).pid]
        services = [service for name, service in self.services.items() if service.launch and name in wanted]
        with ThreadPoolExecutor(len(services)) as threads:
            states = threads.map(lambda service: self._health(service, processes), services)
            return {service.name: health for service, health in zip(services, states, strict=True)}

    def answers(self) -> dict[str, Health]:
        """Check whether each service answers, whoever has started it: in containers, no supervisor knows their processes."""
        services = [s for s in self.services.values() if s.launch and not s.on_demand]
        with ThreadPoolExecutor(len(services)) as threads:
            states = threads.map(lambda service: self._checked(lambda: service.check(self.settings)), services)
            return {service.name: health for service, health in zip(services, states, strict=True)}

    def pid(self, name: str) -> int | None:
        """The process of a service: the JVM, the postmaster and so on, not a wrapper. None when it does not run."""
        process = self.supervisor.processes().get(name)
        return process.pid or None if process else None

    def wait_healthy(self, name: str, timeout: float = TIMEOUT) -> Health:
        """Wait until a service is healthy, as after a crash.

        Raises:
            StackError: it is not healthy after ``timeout`` seconds.
        """
        attempts = Retrying(
            stop=stop_after_delay(timeout),
            wait=wait_fixed(0.5),
            retry=retry_if_not_result(lambda health: health.healthy),
        )
        try:
            health: Health = attempts(lambda: self.health([name])[name])
        except RetryError as error:
            last = error.last_attempt.result()
            raise self._failed(self.services[name], f"is {last.state} after {timeout:.0f} s: {last.detail}") from None
        return health

    def _all_needs(self, name: str) -> set[str]:
        return {n for needed in self.services[name].needs for n in (needed, *self._all_needs(needed))}

    def _bring_down(self, service: Service, users: list[Future[None]], say: Say) -> None:
        wait(users)
        self.stop(service.name)
        say(f"{service.name}: stopped")

    def _bring_up(self, service: Service, needed: list[Future[None]], cancelled: Event, began: float, say: Say) -> None:
        if any(future.exception() for future in needed) or cancelled.is_set():
            return
        try:
            detail = self._start(service, cancelled)
        except BaseException:
            cancelled.set()
            raise
        say(f"{service.name}: {detail} ({time.monotonic() - began:.0f} s)")

    def _start(self, service: Service, cancelled: Event) -> str:
        if not service.launch:
            service.prepare(self.settings)
            return service.check(self.settings)
        if service.external(self.settings):
            return self._use(service)
        # The states of supervisord that the process does not leave by itself.
        final = {"FATAL", "STOPPED"}
        if not self.pid(service.name):
            service.prepare(self.settings)
            started.remember(self.settings, service.name)
            self.supervisor.start(service.name)
            # A process that ran before this may have been killed. Then it has this state too, and supervisord starts it again.
            final.add("EXITED")
        detail = self._await(service, service.ready, cancelled, final)
        if cancelled.is_set():
            return detail
        service.post_start(self.settings)
        return self._await(service, service.check, cancelled, final) if service.readiness else detail

    def _use(self, service: Service) -> str:
        try:
            service.ready(self.settings)
            service.post_start(self.settings)
            return f"{service.check(self.settings)} (external)"
        except Unhealthy as error:
            raise StackError(
                f"{service.name}, which the settings name, does not answer: {error}",
                "start it, or correct the setting that names it.",
            ) from error

    def _await(self, service: Service, check: Check, cancelled: Event, final: set[str]) -> str:
        attempts = Retrying(
            stop=stop_after_delay(TIMEOUT),
            wait=wait_fixed(0.5),
            retry=retry_if_exception_type(Unhealthy),
            reraise=True,
        )

        def healthy() -> str:
            if cancelled.is_set():
                return "not waited for, because another service failed"
            processes = self.supervisor.processes()
            process = processes[service.name]
            if process.state in final:
                raise self._failed(service, f"does not stay up ({process.detail})")
            if process.state != "RUNNING":
                raise Unhealthy(f"its process is {process.state}")
            return self._check(service, check, processes)

        try:
            return attempts(healthy)
        except Unhealthy as error:
            raise self._failed(service, f"is not healthy after {TIMEOUT:.0f} s: {error}") from error

    def _check(self, service: Service, check: Check, processes: dict[str, Process]) -> str:
        detail = check(self.settings)
        if service.heartbeat:
            last = service.heartbeat(self.settings)
            for name in (service.name, *service.needs):
                if name in processes and last < processes[name].started:
                    raise Unhealthy(f"{service.name} has sent no heartbeat since the start of {name}")
        return detail

    def _failed(self, service: Service, how: str) -> StackError:
        log = log_file(self.settings, service.name)
        tail = "\n".join(f"  | {line}" for line in doctor.last_lines(log, 8))
        what = f"{service.name} {how}. The end of its log:\n{tail}"
        return StackError(what, f"read {log} (`lockstep logs {service.name}`).")

    def _health(self, service: Service, processes: dict[str, Process]) -> Health:
        if service.external(self.settings):
            return self._checked(lambda: service.check(self.settings))
        process = processes.get(service.name)
        if process is None or process.state in ("STOPPED", "STOPPING"):
            return Health(False, "stopped", "not running")
        if process.state in ("FATAL", "UNKNOWN"):
            return Health(False, "failed", process.detail)
        pid = process.pid or None
        if process.state != "RUNNING":
            return Health(False, "starting", f"{process.state.lower()} {process.detail}".rstrip(), pid)
        return self._checked(lambda: self._check(service, service.check, processes), pid)

    @staticmethod
    def _checked(check: Callable[[], str], pid: int | None = None) -> Health:
        try:
            return Health(True, "healthy", check(), pid)
        except Unhealthy as error:
            return Health(False, "unhealthy", str(error), pid)
