"""The live service's sign of life: a file whose time says when the Spark server last answered it."""

from datetime import UTC, datetime
from pathlib import Path

from lockstep.settings import Settings


def report(settings: Settings) -> None:
    """Say that the server has answered just now."""
    file = _file(settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def last(settings: Settings) -> datetime:
    """When that was; the beginning of time where there is no report."""
    file = _file(settings)
    return datetime.fromtimestamp(file.stat().st_mtime if file.exists() else 0, UTC)


def _file(settings: Settings) -> Path:
    return settings.home / "run" / "live.beat"
