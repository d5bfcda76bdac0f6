"""The settings with which a service was started, in ``<home>/run/settings/<service>.json``.

A service reads them there, also when its supervisor starts it again: it keeps them until somebody starts it with others. So they
tell what a service runs with. Of a secret, the file has a keyed digest.
"""

import hashlib
import hmac
import json
from collections.abc import Mapping, MutableMapping
from dataclasses import dataclass

from pydantic import SecretStr

from lockstep import atomic_files
from lockstep.settings import Settings
from lockstep.stack.services import environment, run_dir


@dataclass(frozen=True)
class Started:
    """The settings of one service.

    Args:
        variables: ``LOCKSTEP_<NAME>`` and its value, of each setting that is no secret and is set.
        secrets: by ``LOCKSTEP_<NAME>``, a digest.
    """

    variables: Mapping[str, str]
    secrets: Mapping[str, str]

    @classmethod
    def of(cls, settings: Settings) -> "Started":
        """What a service that is started now gets."""
        return cls(environment(settings), {_variable(name): _digest(settings, name) for name in _secrets()})

    def give(self, environ: MutableMapping[str, str], loaded: Settings) -> None:
        """Put them into an environment, in place of those that are there.

        A secret of the environment that is another one by now is left out: the new one is in a file.

        Args:
            loaded: the settings as they are with this environment.
        """
        for name in Settings.model_fields:
            variable = _variable(name)
            if variable not in self.secrets or self.secrets[variable] != _digest(loaded, name):
                environ.pop(variable, None)
        environ.update(self.variables)


def remember(settings: Settings, service: str) -> None:
    """Write what a service is about to be started with."""
    file = run_dir(settings) / "settings" / f"{service}.json"
    started = Started.of(settings)
    content = json.dumps({"variables": dict(started.variables), "secrets": dict(started.secrets)}, indent=1)
    # Only for its owner: the address of a webhook may be a secret too.
    atomic_files.replace(file, content.encode(), 0o600)


def read(settings: Settings, service: str) -> Started | None:
    """What a service was started with the last time; None if nobody has written it."""
    try:
        content = json.loads((run_dir(settings) / "settings" / f"{service}.json").read_text())
    except FileNotFoundError:
        return None
    return Started(content["variables"], content["secrets"])


def _secrets() -> set[str]:
    return {name for name, field in Settings.model_fields.items() if field.annotation is SecretStr}


def _digest(settings: Settings, name: str) -> str:
    """A digest that tells nothing to who does not have the home's own secrets, however short the value is."""
    key = settings.airflow_jwt_secret.get_secret_value().encode()
    value: SecretStr = getattr(settings, name)
    return hmac.new(key, f"{name}={value.get_secret_value()}".encode(), hashlib.sha256).hexdigest()


def _variable(name: str) -> str:
    return f"LOCKSTEP_{name.upper()}"
