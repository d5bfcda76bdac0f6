"""Write an empty project that works: ``lockstep new``, ``lockstep up`` and pytest run in it as they are."""

import keyword
import re
import sys
from importlib.util import find_spec
from pathlib import Path

from lockstep import __version__
from lockstep.new.render import NAME, NotMade, rendered, write

# File of the project to its template. {package} is the project's Python package.
_FILES = {
    "pyproject.toml": "pyproject.toml",
    ".gitignore": "gitignore",
    "README.md": "README.md",
    "spark/{package}/__init__.py": "package.py",
    "spark/{package}/contracts/__init__.py": "contracts.py",
    "spark/{package}/views/__init__.py": "views.py",
    "dbt/dbt_project.yml": "dbt_project.yml",
    "dbt/models/sources.yml": "sources.yml",
    "tests/__init__.py": "tests.py",
    "tests/{package}/test_views.py": "test_views.py",
    "tests/{package}/oracles/record.py": "record.py",
}
# Empty folders, which git would leave out.
_FOLDERS = (
    "expectations/silver",
    "expectations/gold",
    "dbt/macros",
    "dbt/models/staging",
    "dbt/models/intermediate",
    "dbt/models/marts",
    "tests/{package}/unit/views",
)
# The package names the source database, too. These names are taken: by the control database, Airflow's database, PostgreSQL's
# own databases, and modules of the platform's dependencies, which the project's package would hide.
_RESERVED = {"lockstep", "airflow", "postgres", "template0", "template1", "tests", "dbt", "kafka", "pyspark"}


def project(directory: Path, package: str = "") -> tuple[str, list[Path]]:
    """Write an empty project into a directory, which is made; returns its package and its files.

    Args:
        package: the project's Python package; by default the directory's name, as far as it can be one.

    Raises:
        NotMade: the directory is not empty, or the package cannot have that name.
    """
    directory = directory.expanduser().absolute()
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        raise NotMade(f"{directory} is not an empty directory: name one that is empty, or that does not exist yet.")
    package = package or _package_for(directory)
    _check_package(package)
    words = {"package": package, "version": __version__}
    texts = {Path(path.format(package=package)): rendered(f"project/{name}", words) for path, name in _FILES.items()}
    texts |= {Path(folder.format(package=package)) / ".gitkeep": "" for folder in _FOLDERS}
    directory.mkdir(parents=True, exist_ok=True)
    return package, write(directory, texts)


def _package_for(directory: Path) -> str:
    return re.sub(r"[^a-z0-9]+", "_", directory.name.lower()).strip("_")


def _check_package(package: str) -> None:
    if not NAME.fullmatch(package) or keyword.iskeyword(package):
        raise NotMade(
            f"{package!r} cannot be a package: choose one with --package, of small letters, digits and underscores, a "
            "letter first."
        )
    if package in _RESERVED or package in sys.stdlib_module_names or find_spec(package):
        raise NotMade(
            f"{package!r} is the name of another Python package or of a database of the platform: choose another with --package."
        )
