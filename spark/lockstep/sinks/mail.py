"""The mail transport: one e-mail per message. Its Message-ID is made of the idempotency key, so a repetition has the same."""

import json
import smtplib
from email.message import EmailMessage
from typing import TYPE_CHECKING

from lockstep.errors import LockstepError
from lockstep.sinks.message import IDEMPOTENCY_KEY, Message
from lockstep.sinks.transport import Busy, MessageRefused

if TYPE_CHECKING:
    from lockstep.settings import Settings

# A slow answer must not count as none, or the message is sent twice: longer than a healthy receiver ever needs.
_ANSWER_SECONDS = 5.0


class Mail:
    """Sends through ``LOCKSTEP_MAIL_SERVER``, from ``LOCKSTEP_MAIL_FROM`` to ``LOCKSTEP_MAIL_TO``.

    With a user (``LOCKSTEP_MAIL_USER`` and ``_PASSWORD``) it uses STARTTLS and logs in. A permanent error (5xx) is a refusal.
    """

    def __init__(self, settings: "Settings") -> None:
        if not settings.mail_server or not settings.mail_to:
            raise LockstepError(
                "No e-mail is set: set the server in LOCKSTEP_MAIL_SERVER (host:port) and the recipient in LOCKSTEP_MAIL_TO."
            )
        self.settings = settings

    def send(self, message: Message) -> None:
        """See ``Transport``."""
        config = self.settings
        try:
            with smtplib.SMTP(config.mail_server, timeout=_ANSWER_SECONDS) as server:
                if config.mail_user:
                    server.starttls()
                    server.login(config.mail_user, config.mail_password.get_secret_value())
                refused = server.send_message(letter(message, config.mail_from, config.mail_to))
        except smtplib.SMTPRecipientsRefused as error:
            raise _error_of(min(code for code, _ in error.recipients.values()))(
                f"{config.mail_server} refused every recipient: {error.recipients}"
            ) from error
        except smtplib.SMTPResponseException as error:
            raise _error_of(error.smtp_code)(f"{config.mail_server} answers {error}") from error
        except OSError as error:
            raise Busy(f"{config.mail_server} does not take it: {error!r}") from error
        if refused:
            raise MessageRefused(f"{config.mail_server} took it, but not for {', '.join(sorted(refused))}")


def _error_of(code: int) -> type[Busy] | type[MessageRefused]:
    """SMTP's codes 4yz are temporary, its codes 5yz permanent."""
    return MessageRefused if code >= 500 else Busy


def letter(message: Message, sender: str, to: str) -> EmailMessage:
    """The e-mail for an alert."""
    alert = json.loads(message.value)
    email = EmailMessage()
    email["From"], email["To"] = sender, to
    # A header is one line, but the alert's name may contain line breaks.
    email["Subject"] = " ".join(f"Lockstep alert: {alert.get('alert', message.id)}".split())[:200]
    email["Message-ID"] = f"<{message.id}@{sender.rpartition('@')[2]}>"
    email[IDEMPOTENCY_KEY] = message.id
    email.set_content("\n".join(f"{name}: {value}" for name, value in alert.items()))
    return email
