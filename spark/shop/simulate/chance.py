"""Random numbers that are the same for the same words."""

from random import Random


def seeded(*words: object) -> Random:
    """A generator that depends on nothing but these words, on any machine."""
    return Random(" ".join(map(str, words)))  # noqa: S311 - traffic to be repeated, not secrets
