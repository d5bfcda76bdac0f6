import stat

from cryptography.fernet import Fernet
from dotenv import dotenv_values

from lockstep.settings import Settings
from lockstep.stack import secrets

NAMES = ("postgres_password", "airflow_password", "airflow_fernet_key", "airflow_jwt_secret", "token_key")


def test_secrets_are_made_once_and_kept(settings: Settings) -> None:
    first = secrets.ensure(settings)
    again = secrets.ensure(settings)
    for name in NAMES:
        assert len(getattr(first, name).get_secret_value()) >= 16
        assert getattr(again, name) == getattr(first, name)


def test_only_the_owner_can_read_the_file(settings: Settings) -> None:
    secrets.ensure(settings)
    assert stat.S_IMODE(settings.secrets_file.stat().st_mode) == 0o600


def test_secrets_never_print(settings: Settings) -> None:
    made = secrets.ensure(settings)
    shown = f"{made} {made!r} {made.model_dump()}"
    assert not [name for name in NAMES if getattr(made, name).get_secret_value() in shown]


def test_a_secret_that_is_set_wins_and_a_lost_one_is_made_without_touching_the_others(settings: Settings) -> None:
    first = secrets.ensure(settings)
    lines = settings.secrets_file.read_text().splitlines(keepends=True)
    settings.secrets_file.write_text("".join(line for line in lines if "TOKEN_KEY" not in line))
    second = secrets.ensure(settings.model_copy(update={"airflow_password": first.token_key}))
    assert second.airflow_password == first.token_key
    assert second.postgres_password == first.postgres_password
    assert second.token_key.get_secret_value() not in ("", first.token_key.get_secret_value())
    assert dotenv_values(settings.secrets_file)["LOCKSTEP_TOKEN_KEY"] == second.token_key.get_secret_value()


def test_the_keys_are_what_airflow_wants(settings: Settings) -> None:
    made = secrets.ensure(settings)
    Fernet(made.airflow_fernet_key.get_secret_value())
    assert len(made.airflow_jwt_secret.get_secret_value()) >= 64
