"""A real schema registry for tests: Apicurio, on a port of its own, in memory. It is fetched once, like the jars of the stack."""

import hashlib
import socket
import socketserver
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed
from tests.support.ports import free_ports
from tests.support.receivers import served

from lockstep.settings import Settings
from lockstep.stack.jars import spark_home
from lockstep.stack.java import find_java, trust_options

_HERE = Path(__file__).parent / "registry_app"
_ARCHIVE, _JAR = "apicurio-registry-app-3.0.9-all.tar.gz", "apicurio-registry-app-3.0.9-runner.jar"
_SHA256 = "2b28181501a20cbf6efcd77f9b7153908fc01f3d3a7c32024c0bd9e1b04c8a43"


class Registry:
    """Registers schemas at ``url``, the address of Confluent's API."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.path = "/apis/ccompat/v7"
        self.url = f"http://127.0.0.1:{port}{self.path}"

    def register(self, subject: str, schema: str, kind: str = "AVRO") -> int:
        """The id of the subject's next version."""
        answer = httpx.post(
            f"{self.url}/subjects/{subject}/versions", json={"schema": schema, "schemaType": kind}, timeout=30
        )
        answer.raise_for_status()
        found: int = answer.json()["id"]
        return found

    def compatibility(self, subject: str, level: str) -> None:
        """What the next versions of a subject must keep, such as BACKWARD."""
        httpx.put(f"{self.url}/config/{subject}", json={"compatibility": level}, timeout=30).raise_for_status()

    def door(self) -> "Door":
        """Another address of the registry, which can be closed."""
        return Door(self.port, self.path)


@contextmanager
def running(settings: Settings) -> Iterator[Registry]:
    """The registry, until the block ends."""
    (port,) = free_ports(1)
    java = find_java()
    command = [str(java.executable), "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
    command += ["-Dquarkus.http.host=127.0.0.1", f"-Dquarkus.http.port={port}", "-jar", str(_jar(settings))]
    with (settings.home / "registry.log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            registry = Registry(port)
            _answers(registry)
            yield registry
        finally:
            process.kill()
            process.wait()


@retry(retry=retry_if_exception_type(httpx.HTTPError), stop=stop_after_delay(180), wait=wait_fixed(0.2), reraise=True)
def _answers(registry: Registry) -> None:
    httpx.get(f"{registry.url}/subjects").raise_for_status()


def _jar(settings: Settings) -> Path:
    folder = settings.cache / f"registry-{_SHA256[:12]}"
    if not folder.is_dir():
        archive, unpacked = settings.cache / _ARCHIVE, folder.with_suffix(".part")
        ivy, java = next((spark_home() / "jars").glob("ivy-*.jar")), find_java()
        command = [str(java.executable), *trust_options(java, settings.cache), "-jar", str(ivy)]
        command += [
            "-settings",
            str(settings.ivy_settings or _HERE / "ivysettings.xml"),
            "-ivy",
            str(_HERE / "ivy.xml"),
        ]
        command += ["-cache", str(settings.cache / "ivy")]
        command += ["-retrieve", f"{settings.cache}/[artifact]-[revision](-[classifier]).[ext]"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with archive.open("rb") as content:
            assert hashlib.file_digest(content, "sha256").hexdigest() == _SHA256, f"{archive} is another file"
        unpacked.mkdir(exist_ok=True)
        subprocess.run(["tar", "-xf", archive, "-C", unpacked], check=True)
        archive.unlink()
        unpacked.rename(folder)
    return folder / _JAR


class _Forward(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.target)) as other:
            back = threading.Thread(target=_copy, args=(other, self.request))
            back.start()
            _copy(self.request, other)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while part := source.recv(65536):
            target.sendall(part)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


class _Forwarder(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, port: int, target: int) -> None:
        super().__init__(("127.0.0.1", port), _Forward)
        self.target = target


class Door:
    """An address that leads to a registry while it is open; else connections are refused."""

    def __init__(self, target: int, path: str) -> None:
        (self._port,) = free_ports(1)
        self._target = target
        self.url = f"http://127.0.0.1:{self._port}{path}"

    def open(self) -> Any:
        """Open it until the block ends."""
        return served(_Forwarder(self._port, self._target))
