"""The settings as the platform's parts use them."""

from psycopg2.extensions import parse_dsn
from pydantic import SecretStr


def test_a_password_with_blanks_and_quotes_reaches_the_database_as_it_is(settings):
    password = r"a b'c\d = e"
    own = settings.model_copy(update={"postgres_password": SecretStr(password)})
    assert parse_dsn(own.dsn("lockstep"))["password"] == password
