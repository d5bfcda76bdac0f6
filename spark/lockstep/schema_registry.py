"""A schema registry that speaks Confluent's API: schemas by id, and whether a new one is compatible."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
from pydantic import SecretStr
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from lockstep.errors import LockstepError
from lockstep.formats.confluent import Registered

if TYPE_CHECKING:
    from lockstep.settings import Settings

_HEADERS = {"Accept": "application/vnd.schemaregistry.v1+json, application/json"}
# Codes of Confluent's API: there is no such subject, version or schema.
_UNKNOWN = (40401, 40402, 40403)
_TIMEOUT_SECONDS = 10.0
# A registry that is started again is away for longer: then the caller fails, and is tried again by whoever runs it.
_ATTEMPTS = 3


class RegistryDown(LockstepError):
    """The registry does not answer, or not as it should."""


@dataclass(frozen=True)
class SchemaRegistry:
    """The registry of the settings. It goes to Spark's Python workers by value.

    Args:
        url: its address, without user and password.
    """

    url: str
    user: str = ""
    password: SecretStr = field(default_factory=lambda: SecretStr(""))

    def schema(self, schema_id: int) -> Registered | None:
        """The schema with this id; None: the registry has none.

        Raises:
            RegistryDown: it cannot be asked.
        """
        answer = self._ask("GET", f"/schemas/ids/{schema_id}")
        if _is_unknown(answer):
            return None
        found = _body(self.url, answer)
        # Confluent leaves the type out for Avro.
        return Registered(found.get("schemaType", "AVRO"), found["schema"], bool(found.get("references")))

    def incompatible(self, subject: str, schema: Registered) -> list[str] | None:
        """Why the schema may not become the next version of a subject; empty: it may. None: there is no such subject.

        Raises:
            RegistryDown: it cannot be asked.
        """
        versions = self._ask("GET", f"/subjects/{subject}/versions")
        if _is_unknown(versions):
            return None
        _body(self.url, versions)
        body = {"schema": schema.text, "schemaType": schema.kind}
        path = f"/compatibility/subjects/{subject}/versions/latest?verbose=true"
        answer = self._ask("POST", path, body)
        if answer.status_code == httpx.codes.UNPROCESSABLE_ENTITY:
            return [str(answer.json().get("message", "it is no valid schema"))]
        found = _body(self.url, answer)
        return [] if found["is_compatible"] else [*map(str, found.get("messages") or ["it names no reason"])]

    def check(self) -> None:
        """Ask the registry for anything.

        Raises:
            RegistryDown: it does not answer.
        """
        _body(self.url, self._ask("GET", "/subjects", attempts=1, timeout=2.0))

    def _ask(
        self, method: str, path: str, body: Any = None, attempts: int = _ATTEMPTS, timeout: float = _TIMEOUT_SECONDS
    ) -> httpx.Response:
        login = (self.user, self.password.get_secret_value()) if self.user else None
        tries = Retrying(
            retry=retry_if_exception_type(httpx.TransportError),
            stop=stop_after_attempt(attempts),
            wait=wait_exponential(0.2),
            reraise=True,
        )
        with _reached(self.url):
            return tries(
                httpx.request, method, self.url + path, json=body, headers=_HEADERS, auth=login, timeout=timeout
            )


def registry_of(settings: "Settings") -> SchemaRegistry | None:
    """The registry of the settings; None: there is none."""
    url = settings.schema_registry_url.rstrip("/")
    return SchemaRegistry(url, settings.schema_registry_user, settings.schema_registry_password) if url else None


@contextmanager
def _reached(url: str) -> Iterator[None]:
    try:
        yield
    except httpx.HTTPError as error:
        raise RegistryDown(
            f"the schema registry {url} (LOCKSTEP_SCHEMA_REGISTRY_URL) does not answer ({type(error).__name__}: {error}). Start "
            "it, or correct the address: nothing is lost, and reading goes on by itself."
        ) from error


def _is_unknown(answer: httpx.Response) -> bool:
    """Whether the registry says that there is no such schema or subject; a page that is not found has no such code."""
    if answer.status_code != httpx.codes.NOT_FOUND:
        return False
    try:
        return answer.json()["error_code"] in _UNKNOWN
    except (ValueError, KeyError, TypeError):
        return False


def _body(url: str, answer: httpx.Response) -> dict[str, Any]:
    try:
        answer.raise_for_status()
        found: dict[str, Any] = answer.json()
    except (httpx.HTTPStatusError, ValueError) as error:
        refused = answer.status_code in (httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN)
        way = "Correct LOCKSTEP_SCHEMA_REGISTRY_USER and _PASSWORD" if refused else "See its log"
        raise RegistryDown(
            f"the schema registry {url} (LOCKSTEP_SCHEMA_REGISTRY_URL) answers {answer.status_code} {answer.reason_phrase}. "
            f"{way}: nothing is lost, and reading goes on by itself."
        ) from error
    return found
