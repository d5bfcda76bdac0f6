"""supervisord: it starts the parts, restarts what dies, and keeps what they print."""

import configparser
import hashlib
import os
import subprocess
import sys
import tempfile
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
from lockstep.stack.parts import Part, inherited, log_file, run_dir

# The kernel's limit on the path of a Unix socket, with room for the suffix that supervisord binds under at first.
_LONGEST_SOCKET = 90
# A killed process is gone in milliseconds, but for one that waits for its disk; the stack goes on without that one's end.
_KILL_SECONDS = 10
_NEVER = datetime.min.replace(tzinfo=UTC)
_DIED = (FileNotFoundError, ConnectionRefusedError, ConnectionResetError)


@dataclass(frozen=True)
class Process:
    """What supervisord knows of a part: its state's name, its pid (0 when it has none) and since when it runs (UTC)."""

    state: str
    pid: int = 0
    started: datetime = _NEVER
    detail: str = ""


class Supervisor:
    """The supervisor of one home; started when first needed, and there until ``shutdown``."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.config_file = run_dir(settings) / "supervisord.conf"

    @property
    def socket(self) -> Path:
        """Its Unix socket: in the home, or in a private directory of its own when the home's path is too long."""
        usual = run_dir(self.settings) / "supervisor.sock"
        if len(str(usual)) <= _LONGEST_SOCKET:
            return usual
        name = hashlib.sha256(str(self.settings.home).encode()).hexdigest()[:12]
        return Path(tempfile.gettempdir()) / f"lockstep-{os.getuid()}-{name}" / "s.sock"

    @property
    def url(self) -> str:
        """How its processes know it: their ``SUPERVISOR_SERVER_URL``."""
        return f"unix://{self.socket}"

    def ensure(self, parts: list[Part]) -> None:
        """Have a supervisor that knows these parts.

        Raises:
            StackError: it does not start.
        """
        if self.running():
            return
        for directory in (run_dir(self.settings), self.settings.home / "logs"):
            directory.mkdir(parents=True, exist_ok=True)
        self.socket.parent.mkdir(mode=0o700, exist_ok=True)
        self.config_file.write_text(self.configuration(parts))
        # Not from the checkout: a file there could shadow a module.
        done = subprocess.run(
            [sys.executable, "-P", "-m", "supervisor.supervisord", "-c", str(self.config_file)],
            env=inherited(self.settings),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise StackError(
                f"supervisord does not start: {(done.stderr or done.stdout).strip()}",
                f"read {log_file(self.settings, 'supervisord')}.",
            )
        try:
            answered = Retrying(stop=stop_after_delay(15), wait=wait_fixed(0.05), retry=retry_if_not_result(bool))
            answered(self.running)
        except RetryError:
            raise StackError(
                "supervisord was started, but does not answer.", f"read {log_file(self.settings, 'supervisord')}."
            ) from None

    def running(self) -> bool:
        """Whether a supervisor of this home answers."""
        try:
            return bool(self._call("supervisor.getState")["statename"] == "RUNNING")
        except _DIED:
            return False

    def pid(self) -> int:
        """The supervisor's own process id."""
        return int(self._call("supervisor.getPID"))

    def processes(self) -> dict[str, Process]:
        """All parts that it knows, by name; empty when it does not run."""
        try:
            found = self._call("supervisor.getAllProcessInfo")
        except _DIED:
            return {}
        return {
            info["name"]: Process(
                info["statename"], info["pid"], datetime.fromtimestamp(info["start"], UTC), info["description"]
            )
            for info in found
        }

    def start(self, name: str) -> None:
        """Ask for a part to be started; harmless when it runs."""
        try:
            self._call("supervisor.startProcess", name, False)
        except Fault as fault:
            if fault.faultCode != Faults.ALREADY_STARTED:
                raise self._refused("start", name, fault) from fault

    def stop(self, name: str) -> None:
        """Stop a part and wait for its end; harmless when it does not run."""
        try:
            self._call("supervisor.stopProcess", name, True)
        except Fault as fault:
            if fault.faultCode != Faults.NOT_RUNNING:
                raise self._refused("stop", name, fault) from fault

    def kill_orphans(self) -> None:
        """Kill what services have left behind that ended or were killed; returns when nothing of it is left."""
        kill = Retrying(stop=stop_after_delay(_KILL_SECONDS), wait=wait_fixed(0.05), retry=retry_if_result(bool))
        with suppress(RetryError, *_DIED):
            kill(self._call, f"{orphans.NAMESPACE}.kill")

    def shutdown(self) -> None:
        """Stop what still runs, and end the supervisor; returns when it is gone."""
        try:
            self._call("supervisor.shutdown")
        except _DIED:
            return
        Retrying(stop=stop_after_delay(90), wait=wait_fixed(0.1), retry=retry_if_result(bool))(self.socket.exists)

    @staticmethod
    def _refused(verb: str, name: str, fault: Fault) -> StackError:
        return StackError(f"supervisord cannot {verb} {name}: {fault.faultString}", f"read `lockstep logs {name}`.")

    def _call(self, method: str, *arguments: object) -> Any:
        # A proxy for each call: its connection is not made for several threads.
        transport = SupervisorTransport(None, None, self.url)
        try:
            return getattr(ServerProxy("http://localhost", transport=transport), method)(*arguments)
        finally:
            transport.close()

    def configuration(self, parts: list[Part]) -> str:
        """``supervisord.conf`` for these parts; none starts by itself, each is restarted."""
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
            "directory": str(self.settings.home),
            "childlogdir": str(self.settings.home / "logs"),
            "umask": "022",
            **({"user": "root"} if os.geteuid() == 0 else {}),
        }
        for part in parts:
            if part.launch:
                config[f"program:{part.name}"] = self._program(part)
        written = StringIO()
        config.write(written)
        return written.getvalue().replace("%", "%%")

    def _program(self, part: Part) -> dict[str, str]:
        return {
            "command": f'"{sys.executable}" -P -m lockstep.stack.launch {part.name}',
            "autostart": "false",
            "autorestart": "true",
            # Past the launcher's own start, so that one that refuses is not taken for one that ran and died.
            "startsecs": "3",
            "startretries": "5",
            "stopsignal": part.stop_signal,
            "stopwaitsecs": "30",
            "stopasgroup": str(part.stop_group).lower(),
            "killasgroup": "true",
            "redirect_stderr": "true",
            "stdout_logfile": str(log_file(self.settings, part.name)),
            "stdout_logfile_maxbytes": "20MB",
            "stdout_logfile_backups": "2",
        }
