"""The secrets of a home: made once, and kept in one file that only its owner can read."""

import base64
import secrets
from collections.abc import Callable

from dotenv import dotenv_values
from pydantic import SecretStr

from lockstep import atomic_files
from lockstep.settings import Settings

_MAKERS: dict[str, Callable[[], str]] = {
    "postgres_password": lambda: secrets.token_urlsafe(24),
    "airflow_password": lambda: secrets.token_urlsafe(12),
    # Fernet demands 32 bytes in URL-safe base64. Airflow warns when the JWT secret has less than 64 bytes.
    "airflow_fernet_key": lambda: base64.urlsafe_b64encode(secrets.token_bytes(32)).decode(),
    "airflow_jwt_secret": lambda: secrets.token_urlsafe(64),
    "token_key": lambda: secrets.token_hex(32),
}


def ensure(settings: Settings) -> Settings:
    """Make the secrets that are neither set nor in the file yet. Returns the settings with all secrets."""
    settings.home.mkdir(parents=True, exist_ok=True)
    path = settings.secrets_file
    kept: dict[str, str | None] = dotenv_values(path) if path.exists() else {}
    chosen = {}
    for name, make in _MAKERS.items():
        chosen[name] = getattr(settings, name).get_secret_value() or kept.get(_variable(name)) or make()
    missing = {name: value for name, value in chosen.items() if not kept.get(_variable(name))}
    if missing:
        lines = "".join(f"{_variable(name)}={value}\n" for name, value in (chosen | missing).items())
        atomic_files.replace(path, lines.encode(), 0o600)
    return settings.model_copy(update={name: SecretStr(value) for name, value in chosen.items()})


def _variable(name: str) -> str:
    return f"LOCKSTEP_{name.upper()}"
