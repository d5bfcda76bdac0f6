"""The keys of persons in the control database, read as the documentation says where they are."""

import hashlib
import hmac

from lockstep.control.database import control
from lockstep.settings import Settings


def token(key: bytes, value: str) -> str:
    """The token of a value under a key."""
    return hmac.new(key, value.encode(), hashlib.sha256).hexdigest()[:32]


def platform_key(settings: Settings) -> bytes:
    """The key of what is about nobody, and of what names a person."""
    return settings.token_key.get_secret_value().encode()


def keys_of(settings: Settings, person: str) -> list[bytes]:
    """The key of a person, if she has one."""
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("SELECT key FROM subject_keys WHERE subject = %s", (token(platform_key(settings), person),))
        return [bytes(key) for (key,) in cursor.fetchall()]
