"""Sessions on the Spark Connect server."""

from types import SimpleNamespace

from lockstep import session


def test_the_garbage_collector_does_not_close_a_session():
    closed = []
    forgotten = session._session_type().__new__(session._session_type())
    forgotten._client = SimpleNamespace(close=lambda: closed.append(True))
    del forgotten
    assert not closed
