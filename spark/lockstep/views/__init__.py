"""The views, one module each: the only place with business logic. ``VIEWS`` finds them by name."""

from importlib import import_module
from pkgutil import iter_modules

from lockstep.definition import View
from lockstep.errors import UnknownView


def _discover() -> dict[str, View]:
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return {module.VIEW.name: module.VIEW for module in modules}


VIEWS: dict[str, View] = _discover()


def chosen(names: str) -> list[View]:
    """The views of a comma-separated list of names, or ``all``.

    Raises:
        UnknownView: names those that do not exist, and those that do.
    """
    if names == "all":
        return list(VIEWS.values())
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in VIEWS]
    if unknown:
        raise UnknownView(f"There is no view {', '.join(unknown)}: name one of {', '.join(VIEWS)}.")
    return [VIEWS[name] for name in wanted]


__all__ = ["VIEWS", "View", "chosen"]
