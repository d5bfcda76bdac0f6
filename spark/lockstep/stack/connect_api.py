"""Kafka Connect's REST interface, for connectors, each of which has the name of its source database."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx
from tenacity import RetryError, Retrying, retry_if_not_result, retry_if_result, stop_after_delay, wait_fixed

from lockstep.settings import Settings
from lockstep.stack import net
from lockstep.stack.errors import StackError, Unhealthy

# Seconds. A request that changes a connector waits for its tasks.
PATIENCE = 60.0


def state(settings: Settings, name: str) -> str:
    """The connector's state; STOPPED only when its tasks have ended too."""
    status = get(settings, f"/{name}/status")
    shown: str = status["connector"]["state"]
    return "STOPPING" if shown == "STOPPED" and status["tasks"] else shown


def call(settings: Settings, name: str, method: str, path: str, body: Mapping[str, str] | None = None) -> None:
    """Change a connector.

    Raises:
        StackError: Kafka Connect refuses it.
        Unhealthy: Kafka Connect does not answer.
    """
    answer = _request(method, f"{settings.connect_url}/connectors/{name}{path}", body)
    if not answer.is_success:
        raise StackError(
            f"Kafka Connect refused the connector {name} ({method} {path}: {answer.status_code}): {answer.text}",
            "correct infra/connect/source.json or what it names, then `lockstep up connect`.",
        )


def stop(settings: Settings, name: str) -> None:
    """Stop a connector, and wait until its tasks have ended.

    Raises:
        StackError: it does not stop.
    """
    call(settings, name, "PUT", "/stop")
    await_(lambda: state(settings, name) == "STOPPED", f"the connector {name} does not stop")


def await_(condition: Callable[[], bool], otherwise: str) -> None:
    """Wait until a condition holds.

    Raises:
        StackError: it does not, for a minute; the message begins with ``otherwise``.
    """
    attempts = Retrying(stop=stop_after_delay(PATIENCE), wait=wait_fixed(0.5), retry=retry_if_not_result(bool))
    try:
        attempts(condition)
    except RetryError:
        fix = "read `lockstep logs connect`, then try again."
        raise StackError(f"{otherwise} within {PATIENCE:.0f} s.", fix) from None


def get(settings: Settings, path: str) -> Any:
    """What Kafka Connect says of its connectors.

    Raises:
        Unhealthy: it does not answer, or knows no such connector.
    """
    answer = _request("GET", f"{settings.connect_url}/connectors{path}")
    if not answer.is_success:
        raise Unhealthy(f"Kafka Connect at {answer.url}: {answer.status_code} {answer.text}")
    return answer.json()


def registered(settings: Settings, name: str) -> dict[str, str]:
    """A connector's configuration; empty if there is none.

    Raises:
        Unhealthy: Kafka Connect does not answer.
    """
    answer = _request("GET", f"{settings.connect_url}/connectors/{name}/config")
    return {name: value for name, value in answer.json().items() if name != "name"} if answer.is_success else {}


def _request(method: str, url: str, body: Mapping[str, str] | None = None) -> httpx.Response:
    try:
        timeout = net.http().timeout if method == "GET" else PATIENCE
        return _unless_busy(net.http().request, method, url, json=body, timeout=timeout)
    except httpx.HTTPError as error:
        raise Unhealthy(f"Kafka Connect at {url}: {error}") from error


# It answers 409 (Conflict) while it distributes its tasks.
_unless_busy = Retrying(
    stop=stop_after_delay(PATIENCE),
    wait=wait_fixed(0.5),
    retry=retry_if_result(lambda answer: answer.status_code == httpx.codes.CONFLICT),
    retry_error_callback=lambda attempts: attempts.outcome and attempts.outcome.result(),
)


@contextmanager
def answering() -> Iterator[None]:
    """Raise :class:`StackError`, which says what to do, where something is :class:`Unhealthy`."""
    try:
        yield
    except Unhealthy as error:
        raise StackError(str(error), "start it, then `lockstep up connect`.") from error
