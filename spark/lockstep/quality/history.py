"""What the data docs keep of the gates of one table: its newest runs, those that were not in order, and sums by day. Pure.

``ops.quality`` has all runs; this is what a page can show without reading it, and it has a bound.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from lockstep.quality.outcomes import Outcome

History = dict[str, Any]
# A gate every five minutes: most of a day. One run takes about 0.4 kB.
NEWEST = 200
# Of older runs, those in which a check failed: the ones that somebody looks for.
NOT_IN_ORDER = 100
DAYS = 60


def empty(table: str) -> History:
    """The history of a table that no gate has checked."""
    return {"table": table, "expectations": [], "runs": [], "days": {}}


def with_outcomes(history: Mapping[str, Any], outcomes: "Iterable[tuple[Outcome, str]]") -> History:
    """The history with some more outcomes, each with the id of its run. Runs that it has already are not added again."""
    expectations, runs = [*history["expectations"]], [*history["runs"]]
    days = {day: dict(sums) for day, sums in history["days"].items()}
    known = {(run["run"], run["at"]) for run in runs}
    for outcome, run_id in outcomes:
        run = _run(outcome, run_id, expectations)
        if (run["run"], run["at"]) in known:
            continue
        runs.append(run)
        sums = days.setdefault(run["at"][:10], {"runs": 0, "rows": 0, "shut": 0, "warned": 0})
        added = {"runs": 1, "rows": outcome.rows, "shut": not outcome.success, "warned": bool(outcome.warned)}
        days[run["at"][:10]] = {name: sums[name] + int(value) for name, value in added.items()}
    return _bounded({**history, "expectations": expectations, "runs": runs, "days": days})


def _run(outcome: "Outcome", run_id: str, expectations: list[dict[str, Any]]) -> dict[str, Any]:
    checks = []
    for check in outcome.results:
        expectation = {"text": check.expectation, "severity": check.severity.value}
        if expectation not in expectations:
            expectations.append(expectation)
        numbers = [check.unexpected, check.elements, check.observed]
        checks.append([expectations.index(expectation), check.success, *numbers, check.reason])
    return {
        "run": run_id,
        "at": f"{outcome.checked_at:%FT%TZ}",
        "success": outcome.success,
        "warned": bool(outcome.warned),
        "rows": outcome.rows,
        "slice": outcome.slice,
        "checks": checks,
    }


def _bounded(history: History) -> History:
    newest_first = sorted(history["runs"], key=lambda run: str(run["at"]), reverse=True)
    older = [run for run in newest_first[NEWEST:] if not run["success"] or run["warned"]][:NOT_IN_ORDER]
    runs = newest_first[:NEWEST] + older
    used = sorted({check[0] for run in runs for check in run["checks"]})
    place = {old: new for new, old in enumerate(used)}
    runs = [{**run, "checks": [[place[check[0]], *check[1:]] for check in run["checks"]]} for run in runs]
    days = dict(sorted(history["days"].items(), reverse=True)[:DAYS])
    return {**history, "runs": runs, "days": days, "expectations": [history["expectations"][n] for n in used]}
