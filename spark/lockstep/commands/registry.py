"""The aggregates of the project; ``AGGREGATES`` finds them by name."""

from typing import Any

from lockstep.commands.aggregate import Aggregate
from lockstep.commands.errors import UnknownAggregate
from lockstep.project import Registry

AGGREGATES: Registry[Aggregate[Any, Any, Any]] = Registry("aggregates", "AGGREGATE", lambda one: one.problems)


def aggregate(name: str) -> Aggregate[Any, Any, Any]:
    """The aggregate of this name.

    Raises:
        UnknownAggregate: the project has none of this name. The message names those that it has, and files that are broken.
    """
    if name in AGGREGATES:
        return AGGREGATES[name]
    broken = "".join(f"\n  {file}: {reason}" for file, reason in AGGREGATES.broken.items())
    raise UnknownAggregate(
        f"There is no aggregate {name}: name one of {', '.join(AGGREGATES) or '(the project has none)'}.{broken}"
    )
