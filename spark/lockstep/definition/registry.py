"""The views of the project; ``VIEWS`` finds them by name."""

from collections.abc import Iterable

from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View, chained, check
from lockstep.errors import UnknownView, ViewRefused
from lockstep.project import Registry

VIEWS: Registry[View] = Registry("views", "VIEW")


def problems(view: View) -> list[str]:
    """Every reason why a view cannot run as it and the project's other views are declared, each with its fix."""
    return [*check.problems(view), *chained.problems_of_inputs(view, VIEWS)]


def chosen(names: str) -> list[View]:
    """The views of a comma-separated list of names, or ``all``: all that can run. Those that cannot are :func:`broken`.

    Raises:
        UnknownView: names those that do not exist, and those that do.
        ViewRefused: one that is named cannot run as it is declared.
    """
    views = named(names)
    refused = {view.name: reasons for view in views if (reasons := problems(view))}
    if refused and names != "all":
        raise ViewRefused(*next(iter(refused.items())))
    return [view for view in views if view.name not in refused]


def broken() -> dict[str, str]:
    """The contracts and views of the project that cannot run, and why: by file, by ``view <name>`` or ``stream <name>``."""
    views = {f"view {view.name}": problems(view) for view in VIEWS.values()}
    refused = {place: "; ".join(reasons) for place, reasons in views.items() if reasons}
    return CONTRACTS.broken | VIEWS.broken | refused_results() | refused


def refused_results() -> dict[str, str]:
    """The streams that cannot have the results of their view, and why: by ``stream <name>``."""
    found = {f"stream {contract.name}": chained.problems(contract, VIEWS) for contract in CONTRACTS.values()}
    return {place: "; ".join(reasons) for place, reasons in found.items() if reasons}


def with_results(contracts: Iterable[Contract]) -> list[tuple[Contract, View]]:
    """Of these streams, those that have a view's results, each with its view; without those that are refused."""
    return [(c, VIEWS[c.view]) for c in contracts if c.view and not chained.problems(c, VIEWS)]


def named(names: str) -> list[View]:
    """The views of a comma-separated list of names, or ``all``, valid or not; raises UnknownView."""
    if names == "all":
        return list(VIEWS.values())
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in VIEWS]
    if unknown:
        raise UnknownView(f"There is no view {', '.join(unknown)}: name one of {', '.join(VIEWS)}.")
    return [VIEWS[name] for name in wanted]
