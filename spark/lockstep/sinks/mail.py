"""E-mail: one message per alert. Its Message-ID is made of the idempotency key, so that a repetition is the same message."""

import json
import smtplib
from email.message import EmailMessage
from typing import TYPE_CHECKING

from lockstep.errors import LockstepError
from lockstep.sinks.direct import Busy, Refused
from lockstep.sinks.sink import IDEMPOTENCY_KEY, Message

if TYPE_CHECKING:
    from lockstep.settings import Settings


class Mail:
    """The server ``LOCKSTEP_MAIL_SERVER``, from ``LOCKSTEP_MAIL_FROM`` to ``LOCKSTEP_MAIL_TO``.

    With a user (``LOCKSTEP_MAIL_USER`` and ``_PASSWORD``) it speaks STARTTLS first. A permanent error (5xx) is a refusal.
    """

    def __init__(self, settings: "Settings") -> None:
        if not settings.mail_server or not settings.mail_to:
            raise LockstepError(
                "No e-mail is set: name the server in LOCKSTEP_MAIL_SERVER (host:port) and the reader in LOCKSTEP_MAIL_TO."
            )
        self.settings = settings

    def send(self, message: Message) -> None:
        config = self.settings
        try:
            with smtplib.SMTP(config.mail_server, timeout=5.0) as server:
                if config.mail_user:
                    server.starttls()
                    server.login(config.mail_user, config.mail_password.get_secret_value())
                not_for = server.send_message(letter(message, config.mail_from, config.mail_to))
        except smtplib.SMTPRecipientsRefused as error:
            raise _kind(min(code for code, _ in error.recipients.values()))(
                f"for nobody: {error.recipients}"
            ) from error
        except smtplib.SMTPResponseException as error:
            raise _kind(error.smtp_code)(f"{config.mail_server} answers {error}") from error
        except OSError as error:
            raise Busy(f"{config.mail_server} does not take it: {error!r}") from error
        if not_for:
            raise Refused(f"{config.mail_server} took it, but not for {', '.join(sorted(not_for))}")


def _kind(code: int) -> type[Busy] | type[Refused]:
    """SMTP's 4yz ask to be tried later, its 5yz never."""
    return Refused if code >= 500 else Busy


def letter(message: Message, sender: str, to: str) -> EmailMessage:
    """The e-mail of an alert."""
    alert = json.loads(message.value)
    written = EmailMessage()
    written["From"], written["To"] = sender, to
    # A header is one line: what an alert says of itself may hold more.
    written["Subject"] = " ".join(f"Lockstep alert: {alert.get('alert', message.id)}".split())[:200]
    written["Message-ID"] = f"<{message.id}@{sender.rpartition('@')[2]}>"
    written[IDEMPOTENCY_KEY] = message.id
    written.set_content("\n".join(f"{name}: {value}" for name, value in alert.items()))
    return written
