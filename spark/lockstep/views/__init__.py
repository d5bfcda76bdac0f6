"""The views, one module each: the only place with business logic. ``VIEWS`` finds them by name."""

from importlib import import_module
from pkgutil import iter_modules

from lockstep.definition import View
from lockstep.definition.check import problems
from lockstep.errors import UnknownView, ViewRefused


def _discover() -> dict[str, View]:
    views = (_load(module.name) for module in iter_modules(__path__))
    return {view.name: view for view in views}


def _load(name: str) -> View:
    try:
        return import_module(f"{__name__}.{name}").VIEW  # type: ignore[no-any-return]
    except (TypeError, AttributeError) as error:
        # Such as a required field that is left out: its allowed lateness, its key.
        raise ViewRefused(name, [f"{error}: correct spark/lockstep/views/{name}.py"]) from error


VIEWS: dict[str, View] = _discover()


def chosen(names: str) -> list[View]:
    """The views of a comma-separated list of names, or ``all``.

    Raises:
        UnknownView: names those that do not exist, and those that do.
        ViewRefused: one cannot run as it is declared.
    """
    views = named(names)
    for view in views:
        if found := problems(view):
            raise ViewRefused(view.name, found)
    return views


def named(names: str) -> list[View]:
    """The views of a comma-separated list of names, or ``all``, sound or not; raises UnknownView."""
    if names == "all":
        return list(VIEWS.values())
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in VIEWS]
    if unknown:
        raise UnknownView(f"There is no view {', '.join(unknown)}: name one of {', '.join(VIEWS)}.")
    return [VIEWS[name] for name in wanted]


__all__ = ["VIEWS", "View", "chosen", "named"]
