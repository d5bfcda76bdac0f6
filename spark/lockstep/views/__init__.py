"""The views, one module each: the only place with business logic. ``VIEWS`` finds them by name."""

from importlib import import_module
from pkgutil import iter_modules

from lockstep.views.base import View

_NOT_VIEWS = {"base"}


def _discover() -> dict[str, View]:
    names = sorted(m.name for m in iter_modules(__path__) if m.name not in _NOT_VIEWS)
    views = (import_module(f"{__name__}.{name}").VIEW for name in names)
    return {view.name: view for view in views}


VIEWS: dict[str, View] = _discover()

__all__ = ["VIEWS", "View"]
