"""What a power cut does to the newest commits of a Delta table."""

import json
from pathlib import Path

from lockstep import lake
from lockstep.settings import Settings


def newest_commits(settings: Settings, table: str, count: int = 2) -> list[Path]:
    """The files of the newest commits, oldest first."""
    return sorted(Path(lake.path(settings, table), "_delta_log").glob("*.json"))[-count:]


def remove(commits: list[Path]) -> None:
    """They were never written."""
    for commit in commits:
        commit.unlink()


def cut(commits: list[Path]) -> None:
    """The last one is cut short, those before it are empty."""
    for commit in commits:
        commit.write_bytes(commit.read_bytes()[:200] if commit == commits[-1] else b"")


def lose_data(commits: list[Path]) -> None:
    """The data files that they have added are empty."""
    for commit in commits:
        actions = [json.loads(line) for line in commit.read_text().splitlines()]
        for path in [action["add"]["path"] for action in actions if "add" in action]:
            (commit.parents[1] / path).write_bytes(b"")


def tear(settings: Settings, table: str) -> None:
    """Cut the newest commit of a table short."""
    cut(newest_commits(settings, table, 1))
