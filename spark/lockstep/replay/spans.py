"""Which interval of each table a replay holds."""

from collections.abc import Mapping
from typing import Any

from lockstep.batch.rollup import gold_of
from lockstep.contracts import CONTRACTS
from lockstep.refine.tables import Tables
from lockstep.replay import lock
from lockstep.replay.diff import span_of
from lockstep.replay.plan import Plan
from lockstep.views import VIEWS


def spans(plan: Plan, made: Mapping[str, Any] | None = None) -> dict[str, lock.Span]:
    """The intervals to hold: of bronze and silver in arrival, of gold in event time; whole tables where that is not known."""
    found: dict[str, lock.Span] = {}
    for part in plan.parts:
        tables = Tables.of(CONTRACTS[part.stream])
        held = [tables.bronze] if "bronze" in plan.layers else []
        held += [tables.log] if "silver" in plan.layers else []
        found |= dict.fromkeys(held, part.arrived or lock.ALWAYS)
    for target in plan.targets:
        view, shadowed = VIEWS[target.view], (made or {}).get("gold", {}).get(target.view, {})
        span = span_of(shadowed) if shadowed.get("span") else target.span
        found[gold_of(view)] = lock.of_gold(view, *span) if span else lock.ALWAYS
    return found
