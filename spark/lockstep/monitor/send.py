"""Send a notice with one of the notifiers of the settings: ``python -m lockstep.monitor.send <index> < notice.json``."""

import inspect
import pkgutil
import sys
from typing import Any

from airflow.sdk.bases.notifier import BaseNotifier

from lockstep import settings
from lockstep.errors import LockstepError
from lockstep.monitor.notify import NOTICE
from lockstep.settings import Notifier
from lockstep.status.open_problems import Notice

# What a notifier sends if its arguments do not say it, by the names that the notifiers of Airflow's providers use.
_DEFAULTS: dict[str, Any] = {
    "subject": "{{ notice.subject }}",
    "html_content": "<pre>{{ notice.text | e }}</pre>",
    "text": "{{ notice.subject }}\n{{ notice.text }}",
    "message": "{{ notice.subject }}\n{{ notice.text }}",
    "json": {"subject": "{{ notice.subject }}", "text": "{{ notice.text }}"},
}


class NotifierInvalid(LockstepError):
    """An entry of the setting ``notifiers`` is not one of Airflow's notifiers with its arguments."""


def made(notifier: Notifier) -> BaseNotifier:
    """Airflow's notifier for an entry of the settings.

    Raises:
        NotifierInvalid: there is no such class, or it does not take these arguments.
    """
    name = notifier.kind
    try:
        kind = pkgutil.resolve_name(name)
    except (ImportError, AttributeError, ValueError) as error:
        raise NotifierInvalid(
            f"notifiers: class {name!r} cannot be imported ({error}): is its provider installed?"
        ) from error
    if not (inspect.isclass(kind) and issubclass(kind, BaseNotifier)):
        raise NotifierInvalid(f"notifiers: {name} is not one of Airflow's notifiers")
    taken = inspect.signature(kind).parameters
    try:
        return kind(**{key: value for key, value in _DEFAULTS.items() if key in taken} | notifier.arguments)
    except TypeError as error:
        raise NotifierInvalid(f"notifiers: {name}: {error}") from error


def send(notifier: Notifier, notice: Notice) -> None:
    """Send a notice. The notifier's templates have it as ``notice``."""
    # Not field by field: Airflow adds the notifier's own fields, such as ``subject``, to what the templates have.
    made(notifier)({"notice": notice})


def main(index: int) -> None:
    """Send the notice of the standard input."""
    send(settings.load().notifiers[index], NOTICE.validate_json(sys.stdin.buffer.read()))


if __name__ == "__main__":
    try:
        main(int(sys.argv[1]))
    except LockstepError as error:
        sys.exit(str(error))
