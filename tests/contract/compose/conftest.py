"""`docker-compose.yml` as Compose reads it: with the variables that a person sets filled in."""

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from dotenv import dotenv_values
from tests.support.paths import CHECKOUT

SECRETS = {
    name: f"the-{name.lower()}" for name, value in dotenv_values(CHECKOUT / ".env.example").items() if value == ""
}
# $$ | ${NAME} | ${NAME:-default} | ${NAME:?message}
VARIABLE = re.compile(r"\$(?:\$|\{(?P<name>\w+)(?::(?P<kind>[-?])(?P<rest>[^}]*))?\})")


def fill_in(text: str, values: dict[str, str]) -> str:
    """Compose's interpolation, as far as the file uses it.

    Raises:
        LookupError: a required variable is not set.
    """

    def value(found: re.Match[str]) -> str:
        if found["name"] is None:
            return "$"
        if values.get(found["name"]):
            return values[found["name"]]
        if found["kind"] == "-":
            return str(found["rest"])
        raise LookupError(f"{found['name']}: {found['rest']}")

    return VARIABLE.sub(value, text)


@pytest.fixture(autouse=True)
def without_own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a developer has set has no say here."""
    for name in [name for name in os.environ if name.startswith("LOCKSTEP_")]:
        monkeypatch.delenv(name)


@pytest.fixture(scope="session")
def source() -> str:
    """The file as it is written."""
    return (CHECKOUT / "docker-compose.yml").read_text()


@pytest.fixture(scope="session")
def compose(source: str) -> dict[str, Any]:
    """The file with the secrets of `.env.example` set, and every other variable left at its default."""
    loaded: dict[str, Any] = yaml.safe_load(fill_in(source, SECRETS))
    return loaded


@pytest.fixture(scope="session")
def services(compose: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = compose["services"]
    return found


@pytest.fixture(scope="session")
def dockerfile() -> str:
    """The Dockerfile with continued lines joined."""
    text = (CHECKOUT / "infra" / "images" / "lockstep" / "Dockerfile").read_text()
    return re.sub(r"\\\n\s*", " ", text)


@pytest.fixture(scope="session")
def image_settings(dockerfile: str) -> dict[str, str]:
    """The `LOCKSTEP_*` variables that the image sets."""
    return dict(re.findall(r"\b(LOCKSTEP_\w+)=(\S+)", dockerfile))


@pytest.fixture
def container(
    services: dict[str, Any], image_settings: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Any:
    """`container(service)` gives the settings as a process in that container would load them, but for its paths."""
    from lockstep.settings import Settings

    def load(service: str) -> Settings:
        variables = image_settings | services[service]["environment"] | {"LOCKSTEP_HOME": tmp_path}
        with monkeypatch.context() as patch:
            for name, value in variables.items():
                # Of a variable without a value, Compose makes an empty one.
                patch.setenv(name, "" if value is None else str(value))
            return Settings(_env_file=None)  # type: ignore[call-arg]

    return load
