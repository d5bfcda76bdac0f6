"""The keys of persons in the control database, read as the documentation says where they are."""

import hashlib
import hmac
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier

from lockstep.control import subject_keys
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


def asked_for_at_once(settings: Settings, subjects: Sequence[str]) -> list[dict[str, bytes]]:
    """The keys as two processes get them, which ask for all of them at the same time, each in the order of its own hashes."""
    # Not forks of this process: these would have the same hashes.
    context = get_context("spawn")
    with ProcessPoolExecutor(2, context, _meet_at, (context.Barrier(2),)) as pool:
        return [*pool.map(partial(_ask, settings), [subjects, subjects])]


# In a process of its own: where it waits for the other one.
_meeting: list[Barrier] = []


def _meet_at(both: Barrier) -> None:
    _meeting.append(both)


def _ask(settings: Settings, subjects: Sequence[str]) -> dict[str, bytes]:
    with control(settings) as connection:
        _meeting[0].wait(60)
        return subject_keys.ensure(connection, subjects)
