"""Tokens that replace personal values in silver and after it: HMAC-SHA-256 under the platform's key."""

import hmac
from functools import cache
from typing import TYPE_CHECKING

import pandas as pd
from pyspark.sql.pandas.functions import pandas_udf

from lockstep import settings

if TYPE_CHECKING:
    from pyspark.sql import Column


@cache
def _key() -> bytes:
    return settings.load().token_key.get_secret_value().encode()


def token(value: str) -> str:
    """The value's token: 32 hex digits, the same for the same value and key. The worker reads the key: it is in no plan."""
    key = _key()
    if not key:
        raise ValueError(
            "LOCKSTEP_TOKEN_KEY is not set where Spark runs Python; `lockstep up` generates it in secrets.env"
        )
    return hmac.digest(key, value.encode(), "sha256").hex()[:32]


def _tokens(values: pd.Series) -> pd.Series:
    return values.map(token, na_action="ignore")


def tokenise(column: str) -> "Column":
    """A string column with its values replaced by tokens; null stays null."""
    return pandas_udf(_tokens, "string")(column)  # type: ignore[call-overload, no-any-return]
