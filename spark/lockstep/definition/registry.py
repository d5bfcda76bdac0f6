"""The views of the project; ``VIEWS`` finds them by name."""

from lockstep.contracts import CONTRACTS
from lockstep.definition import View
from lockstep.definition.check import problems
from lockstep.errors import UnknownView, ViewRefused
from lockstep.project import Registry

VIEWS: Registry[View] = Registry("views", "VIEW")


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
    """The contracts and views of the project that cannot run, and why: by file, or by ``view <name>``."""
    refused = {f"view {view.name}": "; ".join(reasons) for view in VIEWS.values() if (reasons := problems(view))}
    return CONTRACTS.broken | VIEWS.broken | refused


def named(names: str) -> list[View]:
    """The views of a comma-separated list of names, or ``all``, valid or not; raises UnknownView."""
    if names == "all":
        return list(VIEWS.values())
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in VIEWS]
    if unknown:
        raise UnknownView(f"There is no view {', '.join(unknown)}: name one of {', '.join(VIEWS)}.")
    return [VIEWS[name] for name in wanted]
