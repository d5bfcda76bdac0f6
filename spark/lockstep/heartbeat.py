"""The heartbeat of the live service: a file whose modification time is the last answer of the Spark server."""

from datetime import UTC, datetime
from pathlib import Path

from lockstep.settings import Settings


def report(settings: Settings) -> None:
    """Record that the server has answered just now."""
    file = _file(settings)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.touch()


def last(settings: Settings) -> datetime:
    """When the server last answered; 1970 if it never did."""
    file = _file(settings)
    return datetime.fromtimestamp(file.stat().st_mtime if file.exists() else 0, UTC)


def _file(settings: Settings) -> Path:
    return settings.home / "run" / "live.heartbeat"
