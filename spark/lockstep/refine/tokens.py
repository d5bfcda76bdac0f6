"""Tokens that replace personal values in silver and after it: HMAC-SHA-256, under the key of the person whom a row is about.

Where nobody knows whom a row is about, the key is the platform's: in a stream without ``subject``, and in a row whose subject is
null. A subject that is itself personal has the platform's key too, because tables are joined by it.
"""

import hmac
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import psycopg2
import pyarrow as pa
from pyspark.sql import functions as F

from lockstep import settings
from lockstep.control import subject_keys
from lockstep.control.database import control
from lockstep.definition.columns import ddl
from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from pyspark.sql import Column

    from lockstep.contracts import Contract

# What a value has in the place of a token, where its person has no key. No token looks like it.
NO_KEY = "no key"
# By subject; that of None is the platform's.
Keys = Mapping[str | None, bytes]
# Gives the keys of subjects, by their tokens.
Ask = Callable[[Collection[str]], Mapping[str, bytes]]


class KeysUnavailable(LockstepError):
    """The keys of persons cannot be read where Spark runs Python."""


@cache
def _settings() -> settings.Settings:
    return settings.load()


def _key() -> bytes:
    return _settings().token_key.get_secret_value().encode()


def token(value: str, key: bytes | None = None) -> str:
    """The value's token: 32 hex digits, the same for the same value and key.

    Args:
        key: of a person; None: the platform's. The worker reads either: none is in a plan.
    """
    key = key or _key()
    if not key:
        raise ValueError(
            "LOCKSTEP_TOKEN_KEY is not set where Spark runs Python; `lockstep up` generates it in secrets.env"
        )
    return hmac.digest(key, value.encode(), "sha256").hex()[:32]


def of_person(contract: "Contract") -> list[str]:
    """The personal columns whose tokens are made with the key of the row's subject."""
    return [name for name in contract.pii if contract.subject and name != contract.subject]


def keys_of(subjects: Iterable[str | None], ask: Ask) -> Keys:
    """The keys of the subjects that have one, and the platform's."""
    names = {subject: token(subject) for subject in {*subjects} if subject is not None}
    found = ask(sorted(names.values())) if names else {}
    return {None: _key()} | {subject: found[name] for subject, name in names.items() if name in found}


def tokens(keys: Keys, subjects: Iterable[str | None], values: Iterable[str | None]) -> list[str | None]:
    """The token of each value, under the key of its subject; null stays null."""
    pairs = zip(subjects, values, strict=True)
    return [None if value is None else token(value, keys[of]) if of in keys else NO_KEY for of, value in pairs]


def tokenise(contract: "Contract") -> "dict[str, Column]":
    """The personal columns of parsed rows as tokens, by name. All of one row are made by one question for keys."""
    return tokens_by(contract, _of_subjects)


def tokens_by(contract: "Contract", of_subjects: Callable[..., Any]) -> "dict[str, Column]":
    """The same with another source of keys.

    Args:
        of_subjects: a function for Spark, of subjects and columns; it gives structs of tokens, as :func:`struct_of` does.
    """
    names = of_person(contract)
    others = (name for name in contract.pii if name not in names)
    found: dict[str, Column] = {name: _udf(_of_platform, "STRING")(name) for name in others}
    if names:
        fields = _fields(names)
        row = _udf(of_subjects, ddl(dict.fromkeys(fields, "STRING")))(contract.subject, *names)
        found |= {name: row[field] for name, field in zip(names, fields, strict=True)}
    return found


def _udf(function: Callable[..., Any], kind: str) -> Any:
    return F.arrow_udf(function, kind)  # type: ignore[attr-defined]


def _of_platform(values: pa.Array) -> pa.Array:
    return pa.array(tokens({None: _key()}, [None] * len(values), values.to_pylist()), pa.string())


def _of_subjects(batches: Iterator[tuple[pa.Array, ...]]) -> Iterator[pa.Array]:
    """One connection for a task, and one query for each batch: what was destroyed before a batch is not used in it."""
    with ExitStack() as until_the_end:
        ask = None
        for subjects, *columns in batches:
            with _naming_the_server():
                # A task without rows needs no connection.
                ask = ask or partial(subject_keys.ensure, until_the_end.enter_context(control(_settings().production)))
                made = struct_of(subjects, columns, ask)
            yield made


@contextmanager
def _naming_the_server() -> Iterator[None]:
    try:
        yield
    except psycopg2.OperationalError as error:
        where = f"{_settings().postgres_host}:{_settings().postgres_port}"
        raise KeysUnavailable(
            f"Spark's Python workers cannot read the keys of persons from PostgreSQL at {where}: {' '.join(str(error).split())} "
            "Workers on other machines need LOCKSTEP_POSTGRES_HOST, LOCKSTEP_POSTGRES_PORT and LOCKSTEP_POSTGRES_PASSWORD."
        ) from error


def struct_of(subjects: pa.Array, columns: Sequence[pa.Array], ask: Ask) -> pa.StructArray:
    """The columns as one of structs of tokens."""
    of = subjects.to_pylist()
    keys = keys_of(of, ask)
    made = [pa.array(tokens(keys, of, column.to_pylist()), pa.string()) for column in columns]
    return pa.StructArray.from_arrays(made, _fields(columns))


def _fields(columns: Sequence[Any]) -> list[str]:
    """The names of the fields of a struct: a function that Spark runs does not know those of the columns."""
    return [f"_{number}" for number in range(len(columns))]
