"""supervisord: it starts the services, starts them again when they end, and keeps their output."""

import configparser
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import Any
from xmlrpc.client import Fault, ServerProxy

from supervisor.xmlrpc import Faults, SupervisorTransport
from tenacity import RetryError, Retrying, retry_if_not_result, retry_if_result, stop_after_delay, wait_fixed

from lockstep.settings import Settings
from lockstep.stack import orphans
from lockstep.stack.errors import StackError
from lockstep.stack.services import Service, inherited, log_file, run_dir

# The kernel allows 107 characters for the path of a Unix socket, and supervisord first binds under a name with a suffix.
_LONGEST_SOCKET = 90
# A killed process ends in milliseconds, except one that waits for a disk. The stack does not wait longer for that one.
_KILL_SECONDS = 10
_NEVER = datetime.min.replace(tzinfo=UTC)
# The errors of a call when no supervisor runs, or when it ends during the call.
_NOT_RUNNING = (FileNotFoundError, ConnectionRefusedError, ConnectionResetError)


@dataclass(frozen=True)
class Process:
    """What supervisord knows of a service: the name of its state, its pid (0 when it has none) and its start (UTC)."""

    state: str
    pid: int = 0
    started: datetime = _NEVER
    detail: str = ""


class Supervisor:
    """The supervisor of one home. ``ensure`` starts it, and it runs until ``shutdown``."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.config_file = run_dir(settings) / "supervisord.conf"

    @property
    def socket(self) -> Path:
        """Its Unix socket. It is in the home, or in a private directory of its own when the path of the home is too long."""
        in_home = run_dir(self.settings) / "supervisor.sock"
        if len(str(in_home)) <= _LONGEST_SOCKET:
            return in_home
        name = hashlib.sha256(str(self.settings.home).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"lockstep-{os.getuid()}-{name}" / "s.sock"

    @property
    def url(self) -> str:
        """The address of the supervisor's socket."""
        return f"unix://{self.socket}"

    def ensure(self, services: list[Service]) -> None:
        """Start a supervisor that knows these services, unless one runs. One that runs gets to know those that are new.

        Raises:
            StackError: it does not start.
        """
        if self.running():
            self.config_file.write_text(self.configuration(services))
            # `changed` and `removed` groups stay as they are: their processes may run.
            ((added, _, _),) = self._call("supervisor.reloadConfig")
            for name in added:
                self._call("supervisor.addProcessGroup", name)
            return
        for directory in (run_dir(self.settings), self.settings.home / "logs"):
            directory.mkdir(parents=True, exist_ok=True)
        self.socket.parent.mkdir(mode=0o700, exist_ok=True)
        self.config_file.write_text(self.configuration(services))
        output = run_dir(self.settings) / "supervisord.output"
        keeper = self._start_keeper(output)
        until_true = Retrying(stop=stop_after_delay(15), wait=wait_fixed(0.05), retry=retry_if_not_result(bool))
        with suppress(RetryError):
            until_true(lambda: self.running() or keeper.poll() is not None)
        if not self.running():
            how = "does not start" if keeper.poll() else "was started, but does not answer"
            raise StackError(
                f"supervisord {how}: {output.read_text().strip()}", f"read {log_file(self.settings, 'supervisord')}."
            )

    def _start_keeper(self, output: Path) -> "subprocess.Popen[bytes]":
        # `-P`: a file in the working directory must not shadow a module.
        command = [sys.executable, "-P", "-m", "lockstep.stack.keeper", "--nodaemon", "--silent"]
        with output.open("w") as file:
            return subprocess.Popen(
                [*command, "--configuration", str(self.config_file)],
                cwd=self.settings.home,
                env=inherited(self.settings),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                # Not in the terminal's session: it must outlive the terminal, and not get its Ctrl-C.
                start_new_session=True,
                umask=0o022,
            )

    def running(self) -> bool:
        """Whether a supervisor of this home answers."""
        try:
            return bool(self._call("supervisor.getState")["statename"] == "RUNNING")
        except _NOT_RUNNING:
            return False

    def pid(self) -> int:
        """The supervisor's own process id."""
        return int(self._call("supervisor.getPID"))

    def processes(self) -> dict[str, Process]:
        """All services that it knows, by name. Empty when it does not run."""
        try:
            processes = self._call("supervisor.getAllProcessInfo")
        except _NOT_RUNNING:
            return {}
        return {info["name"]: _process(info) for info in processes}

    def start(self, name: str) -> None:
        """Start a service, without waiting for it. Does nothing when it runs."""
        try:
            self._call("supervisor.startProcess", name, False)
        except Fault as fault:
            if fault.faultCode != Faults.ALREADY_STARTED:
                raise self._refusal("start", name, fault) from fault

    def signal(self, name: str, signal: str) -> None:
        """Send a signal (such as ``HUP``) to a service that runs."""
        try:
            self._call("supervisor.signalProcess", name, signal)
        except Fault as fault:
            raise self._refusal("signal", name, fault) from fault
        except _NOT_RUNNING as error:
            what = f"No supervisor runs in {self.settings.home}, so {name} gets no SIG{signal}."
            raise StackError(what, f"start the stack, or send the signal to the container of {name}.") from error

    def stop(self, name: str) -> None:
        """Stop a service and wait until it has ended. Does nothing when it does not run."""
        try:
            self._call("supervisor.stopProcess", name, True)
        except Fault as fault:
            if fault.faultCode != Faults.NOT_RUNNING:
                raise self._refusal("stop", name, fault) from fault

    def kill_orphans(self) -> None:
        """Kill every process that a service has left behind, and wait until they have ended."""
        kill = Retrying(stop=stop_after_delay(_KILL_SECONDS), wait=wait_fixed(0.05), retry=retry_if_result(bool))
        with suppress(RetryError, *_NOT_RUNNING):
            kill(self._call, f"{orphans.NAMESPACE}.kill")

    def shutdown(self) -> None:
        """Stop every service that still runs, end the supervisor, and wait until it has ended."""
        try:
            self._call("supervisor.shutdown")
        except _NOT_RUNNING:
            return
        Retrying(stop=stop_after_delay(90), wait=wait_fixed(0.1), retry=retry_if_result(bool))(self.socket.exists)

    @staticmethod
    def _refusal(verb: str, name: str, fault: Fault) -> StackError:
        return StackError(f"supervisord cannot {verb} {name}: {fault.faultString}", f"read `lockstep logs {name}`.")

    def _call(self, method: str, *arguments: object) -> Any:
        # A proxy for each call: one connection must not be used by several threads.
        transport = SupervisorTransport(None, None, self.url)
        try:
            return getattr(ServerProxy("http://localhost", transport=transport), method)(*arguments)
        finally:
            transport.close()

    def configuration(self, services: list[Service]) -> str:
        """``supervisord.conf`` for these services. None starts by itself. Each is started again when it ends."""
        run = run_dir(self.settings)
        config = configparser.RawConfigParser()
        config["unix_http_server"] = {"file": str(self.socket), "chmod": "0700"}
        config["rpcinterface:supervisor"] = {
            "supervisor.rpcinterface_factory": "supervisor.rpcinterface:make_main_rpcinterface"
        }
        config[f"rpcinterface:{orphans.NAMESPACE}"] = {
            "supervisor.rpcinterface_factory": f"{orphans.__name__}:{orphans.interface.__name__}"
        }
        config["supervisord"] = {
            "logfile": str(log_file(self.settings, "supervisord")),
            "pidfile": str(run / "supervisord.pid"),
            "childlogdir": str(self.settings.home / "logs"),
            **({"user": "root"} if os.geteuid() == 0 else {}),
        }
        for service in services:
            if service.launch:
                config[f"program:{service.name}"] = self._program(service)
        text = StringIO()
        config.write(text)
        return text.getvalue().replace("%", "%%")

    def _program(self, service: Service) -> dict[str, str]:
        return {
            "command": f'"{sys.executable}" -P -m lockstep.stack.launch {service.name}',
            "autostart": "false",
            "autorestart": "true",
            # The launcher needs less to start. When it refuses, it ends within this time, and that does not count as a run.
            "startsecs": "3",
            "startretries": "5",
            "stopsignal": service.stop_signal,
            "stopwaitsecs": "30",
            "stopasgroup": str(service.stop_group).lower(),
            "killasgroup": "true",
            "redirect_stderr": "true",
            "stdout_logfile": str(log_file(self.settings, service.name)),
            "stdout_logfile_maxbytes": "20MB",
            "stdout_logfile_backups": "2",
        }


def _process(info: Mapping[str, Any]) -> Process:
    # A start in the future is of before the clock was set back: what comes after it is not known to be older.
    started = datetime.fromtimestamp(info["start"], UTC) if info["start"] <= info["now"] else _NEVER
    return Process(info["statename"], info["pid"], started, info["description"])
