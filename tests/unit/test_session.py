"""Sessions on the Spark Connect server."""

from types import SimpleNamespace

import pytest
from pydantic import SecretStr, ValidationError

from lockstep import session
from lockstep.settings import Settings


def test_the_garbage_collector_does_not_close_a_session():
    closed = []
    forgotten = session._session_type().__new__(session._session_type())
    forgotten._client = SimpleNamespace(close=lambda: closed.append(True))
    del forgotten
    assert not closed


@pytest.mark.parametrize(
    ("remote", "token", "expected"),
    [
        ("sc://spark:15002", "", "sc://spark:15002/;user_id=ingest"),
        ("sc://spark:15002/", "", "sc://spark:15002/;user_id=ingest"),
        ("sc://spark:443/;use_ssl=true", "", "sc://spark:443/;use_ssl=true;user_id=ingest"),
        ("sc://spark:443/;use_ssl=true", "t0k", "sc://spark:443/;use_ssl=true;token=t0k;user_id=ingest"),
    ],
)
def test_an_address_may_have_parameters_and_a_token(remote, token, expected):
    settings = Settings(spark_remote=remote, spark_token=SecretStr(token))
    assert session.remote(settings, "ingest") == expected


def test_a_token_in_the_address_is_refused_because_addresses_are_printed():
    with pytest.raises(ValidationError, match="LOCKSTEP_SPARK_TOKEN"):
        Settings(spark_remote="sc://spark:443/;token=t0k")
