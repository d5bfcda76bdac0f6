"""A registry that does not answer, or not as it should, is named with the way out; and no password with it."""

import base64
import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from pydantic import SecretStr
from tests.support.ports import free_ports
from tests.support.receivers import served

from lockstep import settings as configuration
from lockstep.formats.confluent import Registered
from lockstep.schema_registry import RegistryDown, SchemaRegistry, registry_of

SECRET = "secret"


class Answers(ThreadingHTTPServer):
    """Gives every request the same answer, to one account."""

    def __init__(self, status: int, body: object) -> None:
        super().__init__(("127.0.0.1", 0), Answer)
        self.answer = status, json.dumps(body).encode()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


class Answer(BaseHTTPRequestHandler):
    server: Answers

    def do_GET(self) -> None:
        login = base64.b64encode(b"ann:secret").decode()
        status, body = self.server.answer if self.headers["Authorization"] == f"Basic {login}" else (401, b"{}")
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def answering() -> Iterator[Answers]:
    with served(Answers(200, {"schema": '"string"'})) as server:
        yield server


def of(server: Answers, password: str = SECRET) -> SchemaRegistry:
    return SchemaRegistry(server.url, "ann", SecretStr(password))


def test_without_a_type_a_schema_is_of_avro(answering: Answers) -> None:
    assert of(answering).schema(1) == Registered("AVRO", '"string"')


def test_an_account_that_is_refused_is_told_so_without_its_password(answering: Answers) -> None:
    with pytest.raises(RegistryDown, match=r"401 Unauthorized\. Correct LOCKSTEP_SCHEMA_REGISTRY_USER") as refusal:
        of(answering, "wrong").schema(1)
    assert "wrong" not in f"{refusal.value}{of(answering, 'wrong')!r}"


@pytest.mark.parametrize(("status", "body"), [(500, {}), (502, {}), (429, {})])
def test_an_error_is_no_answer_and_is_not_taken_for_an_unknown_schema(status: int, body: object) -> None:
    with served(Answers(status, body)) as server, pytest.raises(RegistryDown, match=f"answers {status}"):
        of(server).schema(1)


def test_an_id_that_is_not_found_is_unknown() -> None:
    with served(Answers(404, {"error_code": 40403, "message": "Schema not found"})) as server:
        assert of(server).schema(1) is None


def test_a_404_of_something_else_is_no_answer() -> None:
    with served(Answers(404, {"detail": "no such page"})) as server, pytest.raises(RegistryDown, match="answers 404"):
        of(server).schema(1)


def test_an_address_where_nobody_listens_is_named() -> None:
    (port,) = free_ports(1)
    with pytest.raises(
        RegistryDown, match=rf"http://127.0.0.1:{port} \(LOCKSTEP_SCHEMA_REGISTRY_URL\) does not answer"
    ):
        SchemaRegistry(f"http://127.0.0.1:{port}").check()


def test_the_settings_name_the_registry() -> None:
    settings = configuration.load()
    assert registry_of(settings) is None
    named = settings.model_copy(update={"schema_registry_url": "http://registry/", "schema_registry_user": "ann"})
    assert registry_of(named) == SchemaRegistry("http://registry", "ann")
