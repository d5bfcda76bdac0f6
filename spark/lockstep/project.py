"""The project that the platform runs: its contracts and views, in the Python package that ``pyproject.toml`` names.

A project is a directory with ``spark/<package>/{contracts,views}``, ``expectations/``, ``dbt/`` and perhaps ``dags/``. The
setting ``LOCKSTEP_PROJECT`` says where it is, and ``[tool.lockstep]`` in its ``pyproject.toml`` has its settings.
"""

import sys
from collections.abc import Iterator, MutableMapping
from importlib import import_module
from pathlib import Path
from typing import Generic, TypeVar

from lockstep import settings as configuration
from lockstep.errors import LockstepError

Item = TypeVar("Item")


class ProjectInvalid(LockstepError):
    """There is no project here, or one of its modules does not define what it must."""


class Registry(MutableMapping[str, Item], Generic[Item]):
    """The contracts or views of the project, by name. Their modules are imported at the first use.

    Args:
        folder: ``contracts`` or ``views``.
        constant: the name that each module defines, such as ``VIEW``. Its value has a ``name``.
    """

    def __init__(self, folder: str, constant: str) -> None:
        self.folder, self.constant = folder, constant
        self._loaded: dict[str, Item] | None = None

    @property
    def _items(self) -> dict[str, Item]:
        if self._loaded is None:
            owner = package()
            items = [self.load(owner, name) for name in module_names(self.folder)]
            self._loaded = {item.name: item for item in items}  # type: ignore[attr-defined]
        return self._loaded

    def load(self, owner: str, module: str) -> Item:
        """Import one module of the folder in the package ``owner``, and return what it defines.

        Raises:
            ProjectInvalid: the module does not define the constant, or leaves out a required field.
        """
        try:
            item: Item = getattr(import_module(f"{owner}.{self.folder}.{module}"), self.constant)
        except (TypeError, AttributeError) as error:
            raise ProjectInvalid(
                f"{folder(self.folder) / module}.py does not define {self.constant}: {error}."
            ) from error
        return item

    def __getitem__(self, name: str) -> Item:
        return self._items[name]

    def __setitem__(self, name: str, item: Item) -> None:
        self._items[name] = item

    def __delitem__(self, name: str) -> None:
        del self._items[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)


def package() -> str:
    """The name of the project's Python package; after the call it can be imported.

    Raises:
        ProjectInvalid: the settings name no package.
    """
    return _settings().package


def folder(name: str) -> Path:
    """The directory ``spark/<package>/<name>`` of the project."""
    settings = _settings()
    return settings.project / "spark" / settings.package / name


def module_names(name: str) -> list[str]:
    """The names of the modules in such a directory, sorted. Nothing is imported, so that DAG files may call it."""
    return sorted(file.stem for file in folder(name).glob("*.py") if file.stem != "__init__")


def _settings() -> configuration.Settings:
    """The settings, which name a package; after the call it can be imported."""
    settings = configuration.load()
    if not settings.package:
        raise ProjectInvalid(
            f"{settings.project} is not a Lockstep project: its pyproject.toml has no `[tool.lockstep]` with a `package`. "
            "Change into a project, set LOCKSTEP_PROJECT, or make one with `lockstep init`."
        )
    sources = str(settings.project / "spark")
    if sources not in sys.path:
        sys.path.insert(0, sources)
    return settings
