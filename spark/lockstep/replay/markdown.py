"""A plan and a diff in words. Pure."""

from collections.abc import Mapping
from typing import Any

KINDS = ("windows", "equal", "changed", "added", "removed")


def diff_as_markdown(replay: str, compared: Mapping[str, Any]) -> str:
    """The diff as a table and its samples, for the page on which somebody decides."""
    head = [f"Replay `{replay}`: {compared['changed']:,} of {compared['windows']:,} windows would change.", ""]
    table = ["| table | " + " | ".join(KINDS) + " |", "|---" * (len(KINDS) + 1) + "|"]
    table += [
        f"| {name} | " + " | ".join(f"{found[kind]:,}" for kind in KINDS) + " |"
        for name, found in compared["tables"].items()
    ]
    samples = [
        f"- `{name}` {_code(sample)}" for name, found in compared["tables"].items() for sample in found["samples"]
    ]
    failed = [
        f"- `{name}` fails its suite: {_code(reason)}" for name, rs in compared["checks"].items() for reason in rs
    ]
    return "\n".join([*head, *table, "", *samples, *failed])


def _code(text: str) -> str:
    """As code, so that no value of a row is read as Markdown."""
    return "`" + text.replace("`", "'") + "`"
