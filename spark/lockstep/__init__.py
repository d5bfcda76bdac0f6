"""Lockstep: live streams and scheduled rollups, proven equal."""

# Not `from`: the name `version` is that of a module of this package.
import importlib.metadata

__version__ = importlib.metadata.version("lockstep")
