"""Which interval of each table a replay holds."""

from collections.abc import Mapping
from typing import Any

from lockstep.contracts import CONTRACTS
from lockstep.control import intervals
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of
from lockstep.replay.diff import span_of
from lockstep.replay.plan import Plan


def spans(plan: Plan, made: Mapping[str, Any] | None = None) -> dict[str, intervals.Span]:
    """The intervals to hold: of bronze and silver in arrival, of gold in event time; whole tables where that is not known."""
    found: dict[str, intervals.Span] = {}
    for part in plan.parts:
        tables = Tables.of(CONTRACTS[part.stream])
        held = [tables.bronze] if "bronze" in plan.layers else []
        held += [tables.log] if "silver" in plan.layers else []
        found |= dict.fromkeys(held, part.arrived or intervals.ALWAYS)
    for target in plan.targets:
        view, shadowed = VIEWS[target.view], (made or {}).get("gold", {}).get(target.view, {})
        span = span_of(shadowed) if shadowed.get("span") else target.span
        found[gold_of(view)] = intervals.of_gold(view, *span) if span else intervals.ALWAYS
    return found
