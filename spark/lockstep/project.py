"""The project that the platform runs: its contracts and views, in the Python package that ``pyproject.toml`` names.

A project is a directory with ``spark/<package>/{contracts,views}``, ``expectations/``, ``dbt/`` and perhaps ``dags/``. The
setting ``LOCKSTEP_PROJECT`` says where it is, and ``[tool.lockstep]`` in its ``pyproject.toml`` has its settings.
"""

import sys
import traceback
from collections.abc import Callable, Iterator, MutableMapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Generic, TypeVar

from lockstep import settings as configuration
from lockstep.errors import LockstepError

Item = TypeVar("Item")
# How the names of files with schemas end, which lie beside the contracts.
SCHEMA_FILES = (".avsc", ".proto")


class ProjectInvalid(LockstepError):
    """There is no project here, or one of its modules does not define what it must."""


class Registry(MutableMapping[str, Item], Generic[Item]):
    """The contracts or views of the project, by name. Their modules are imported at the first use.

    A module that is broken is left out, and stops no other: ``broken`` names it.

    Args:
        folder: ``contracts`` or ``views``.
        constant: the name that each module defines, such as ``VIEW``. Its value has a ``name``.
        problems: why a value of it is refused; none for a sound one.
        complete: adds what other files of the project say of a sound value.
    """

    def __init__(
        self,
        folder: str,
        constant: str,
        problems: Callable[[Item], Sequence[str]] = lambda _: (),
        complete: Callable[[Item, configuration.Settings], Item] = lambda item, _: item,
    ) -> None:
        self.folder, self.constant, self._problems, self._complete = folder, constant, problems, complete
        self._loaded: dict[str, Item] | None = None
        self._broken: dict[str, str] = {}

    @property
    def broken(self) -> dict[str, str]:
        """By file, why it defines nothing: the error, with its line where that is known."""
        _ = self._items
        return dict(self._broken)

    @property
    def _items(self) -> dict[str, Item]:
        if self._loaded is None:
            # To read the settings takes longer than to import a module.
            settings, loaded = _settings(), {}
            directory = folder_of(settings, self.folder)
            for name in _modules(directory):
                try:
                    item: Any = self._load(settings, name)
                    loaded[item.name] = item
                except Exception as error:  # noqa: BLE001 - the code of others, which may raise anything
                    file = directory / f"{name}.py"
                    self._broken[str(file)] = _where(error, file)
            self._loaded = loaded
        return self._loaded

    def _load(self, settings: configuration.Settings, module: str) -> Item:
        """Import one module of the folder, and return what it defines.

        Raises:
            ProjectInvalid: the module does not define the constant, leaves out a required field, or contradicts itself.
        """
        try:
            item: Item = getattr(import_module(f"{settings.package}.{self.folder}.{module}"), self.constant)
        except (TypeError, AttributeError) as error:
            raise ProjectInvalid(f"it does not define {self.constant}: {error}") from error
        if problems := self._problems(item):
            raise ProjectInvalid("; ".join(problems))
        return self._complete(item, settings)

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


def _where(error: BaseException, file: Path) -> str:
    """The error and its line of the file, as far as it tells one."""
    cause = error.__cause__ or error
    lines = [frame.lineno for frame in traceback.extract_tb(cause.__traceback__) if frame.filename == str(file)]
    if isinstance(cause, SyntaxError) and cause.filename == str(file):
        lines.append(cause.lineno)
    text = str(error) if isinstance(error, LockstepError) else f"{type(error).__name__}: {error}"
    return f"line {lines[-1]}: {text}" if lines else text


def package() -> str:
    """The name of the project's Python package; after the call it can be imported.

    Raises:
        ProjectInvalid: the settings name no package.
    """
    return _settings().package


def folder(name: str) -> Path:
    """The directory ``spark/<package>/<name>`` of the project."""
    return folder_of(_settings(), name)


def folder_of(settings: configuration.Settings, name: str) -> Path:
    """The same of the project of the settings."""
    return settings.project / "spark" / settings.package / name


def module_names(name: str) -> list[str]:
    """The names of the modules in such a directory, sorted. Nothing is imported, so that DAG files may call it."""
    return _modules(folder(name))


def _modules(directory: Path) -> list[str]:
    return sorted(file.stem for file in directory.glob("*.py") if file.stem != "__init__")


def sources() -> dict[str, tuple[int, int]]:
    """By file of the project's package and suites, when it was changed (ns) and its size: another answer means other code."""
    suites = (_settings().project / "expectations").rglob("*.json")
    schemas = (file for ending in SCHEMA_FILES for file in folder("contracts").glob(f"*{ending}"))
    states = {str(file): file.stat() for files in (folder(".").rglob("*.py"), schemas, suites) for file in files}
    return {file: (state.st_mtime_ns, state.st_size) for file, state in states.items()}


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
