"""The webhook transport: each message is one POST of its JSON. The header ``Idempotency-Key`` identifies a repetition."""

from typing import TYPE_CHECKING

import httpx

from lockstep.errors import LockstepError
from lockstep.sinks.message import IDEMPOTENCY_KEY, Message
from lockstep.sinks.transport import Busy, MessageRefused

if TYPE_CHECKING:
    from lockstep.settings import Settings

# Request Timeout, Too Early, Too Many Requests: the only client errors that ask for another try.
_TRY_LATER = {408, 425, 429}
# A slow answer must not count as none, or the message is sent twice: longer than a healthy receiver ever needs.
_ANSWER_SECONDS = 5.0


class Webhook:
    """Sends to ``LOCKSTEP_WEBHOOK_URL``, with ``LOCKSTEP_WEBHOOK_TOKEN`` as its bearer token.

    Any 2xx means that the receiver took the message. 408, 425, 429, 5xx and no answer within 5 s mean that it is busy. Every
    other answer is a refusal.
    """

    def __init__(self, settings: "Settings") -> None:
        if not settings.webhook_url:
            raise LockstepError("No webhook is set: set its address in LOCKSTEP_WEBHOOK_URL.")
        token = settings.webhook_token.get_secret_value()
        self.url = settings.webhook_url
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._client = httpx.Client(timeout=_ANSWER_SECONDS)

    def send(self, message: Message) -> None:
        """See ``Transport``."""
        headers = self._headers | {IDEMPOTENCY_KEY: message.id}
        try:
            answer = self._client.post(self.url, content=message.value, headers=headers)
        except httpx.TransportError as error:
            raise Busy(f"{self.url} does not answer: {error!r}") from error
        if answer.status_code in _TRY_LATER or answer.is_server_error:
            raise Busy(f"{self.url} answers {answer.status_code}")
        if not answer.is_success:
            raise MessageRefused(f"{self.url} answers {answer.status_code}: {answer.text[:200]}")
