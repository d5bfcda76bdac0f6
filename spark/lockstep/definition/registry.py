"""The views of the project; ``VIEWS`` finds them by name."""

from lockstep.definition import View
from lockstep.definition.check import problems
from lockstep.errors import UnknownView, ViewRefused
from lockstep.project import ProjectInvalid, Registry


class _Views(Registry[View]):
    def load(self, owner: str, module: str) -> View:
        try:
            return super().load(owner, module)
        except ProjectInvalid as error:
            # For example, a required field is left out: its allowed lateness, its key.
            raise ViewRefused(module, [str(error)]) from error


VIEWS: Registry[View] = _Views("views", "VIEW")


def chosen(names: str) -> list[View]:
    """The views of a comma-separated list of names, or ``all``.

    Raises:
        UnknownView: names those that do not exist, and those that do.
        ViewRefused: one cannot run as it is declared.
    """
    views = named(names)
    for view in views:
        if reasons := problems(view):
            raise ViewRefused(view.name, reasons)
    return views


def named(names: str) -> list[View]:
    """The views of a comma-separated list of names, or ``all``, valid or not; raises UnknownView."""
    if names == "all":
        return list(VIEWS.values())
    wanted = [name.strip() for name in names.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in VIEWS]
    if unknown:
        raise UnknownView(f"There is no view {', '.join(unknown)}: name one of {', '.join(VIEWS)}.")
    return [VIEWS[name] for name in wanted]
