"""A webhook: each alert is one POST of its JSON, with an idempotency key by which the receiver knows a repetition."""

from typing import TYPE_CHECKING

import httpx

from lockstep.errors import LockstepError
from lockstep.sinks.direct import Busy, Refused
from lockstep.sinks.sink import IDEMPOTENCY_KEY, Message

if TYPE_CHECKING:
    from lockstep.settings import Settings

_LATER = {408, 425, 429}


class Webhook:
    """The receiver at ``LOCKSTEP_WEBHOOK_URL``; ``LOCKSTEP_WEBHOOK_TOKEN`` is its bearer token.

    Any 2xx is taken. 408, 425, 429, 5xx and no answer within 5 s mean later; every other answer is a refusal.
    """

    def __init__(self, settings: "Settings") -> None:
        if not settings.webhook_url:
            raise LockstepError("No webhook is set: name its address in LOCKSTEP_WEBHOOK_URL.")
        token = settings.webhook_token.get_secret_value()
        self.url = settings.webhook_url
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._client = httpx.Client(timeout=5.0)

    def send(self, message: Message) -> None:
        headers = self._headers | {IDEMPOTENCY_KEY: message.id}
        try:
            answer = self._client.post(self.url, content=message.value, headers=headers)
        except httpx.TransportError as error:
            raise Busy(f"{self.url} does not answer: {error!r}") from error
        if answer.status_code in _LATER or answer.is_server_error:
            raise Busy(f"{self.url} answers {answer.status_code}")
        if not answer.is_success:
            raise Refused(f"{self.url} answers {answer.status_code}: {answer.text[:200]}")
