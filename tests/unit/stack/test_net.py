"""A service's own page answers, or the service is unhealthy."""

import httpx
import pytest

from lockstep.stack import net
from lockstep.stack.errors import Unhealthy

URL = "http://127.0.0.1:1/health"


def answering(monkeypatch: pytest.MonkeyPatch, answer: httpx.Response | Exception) -> None:
    def handle(_: httpx.Request) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        return answer

    client = httpx.Client(transport=httpx.MockTransport(handle))
    monkeypatch.setattr(net, "http", lambda: client)


def test_a_page_that_answers_is_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, httpx.Response(200, json={"status": "healthy"}))
    assert net.ask(URL, "the service").json() == {"status": "healthy"}


@pytest.mark.parametrize("answer", [httpx.Response(503), httpx.Response(302), httpx.ConnectError("refused")])
def test_an_error_and_no_answer_make_it_unhealthy_by_its_name(
    monkeypatch: pytest.MonkeyPatch, answer: httpx.Response | Exception
) -> None:
    answering(monkeypatch, answer)
    with pytest.raises(Unhealthy, match=r"^the service: .*(503|302|refused)"):
        net.ask(URL, "the service")
