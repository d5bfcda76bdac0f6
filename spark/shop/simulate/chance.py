"""Reproducible random numbers."""

from random import Random


def seeded(*words: object) -> Random:
    """A generator seeded with these words alone: the same words give the same numbers, on any machine."""
    return Random(" ".join(map(str, words)))  # noqa: S311 - for traffic that can be repeated, not for secrets
