"""Lockstep: live streams and scheduled rollups, proven equal."""

from importlib.metadata import version

__version__ = version("lockstep")
