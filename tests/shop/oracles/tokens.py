"""The token that replaces a personal value from silver on, computed from its definition in the documentation."""

import hashlib
import hmac
import os
from functools import cache

import psycopg2

# Who runs the oracle on records of a platform sets them to that platform's key, and to the address of its control database.
KEY_VARIABLE = "LOCKSTEP_TOKEN_KEY"
DSN_VARIABLE = "LOCKSTEP_KEYS_DSN"


def token(value: str | None, user_id: str) -> str | None:
    """The first half of the HMAC-SHA-256 with the key of the user, in hex."""
    return None if value is None else _half(_key(_half(os.environ.get(KEY_VARIABLE, "").encode(), user_id)), value)


def _half(key: bytes, value: str) -> str:
    return hmac.new(key, value.encode(), hashlib.sha256).hexdigest()[:32]


@cache
def _key(user: str) -> bytes:
    """The key that the platform has for the user, who is known there by her own token. Without a platform, any one will do."""
    if DSN_VARIABLE not in os.environ:
        return user.encode()
    connection = psycopg2.connect(os.environ[DSN_VARIABLE])
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT key FROM subject_keys WHERE subject = %s", (user,))
            ((key,),) = cursor.fetchall()
            return bytes(key)
    finally:
        connection.close()
