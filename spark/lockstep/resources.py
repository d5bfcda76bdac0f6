"""The platform's own files: inside the installed wheel, or in the checkout of an editable install."""

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
_CHECKOUT = _PACKAGE.parents[1]


def resource(name: str) -> Path:
    """The platform's directory of this name, such as ``infra`` or ``dags``."""
    packaged = _PACKAGE / name
    return packaged if packaged.is_dir() else _CHECKOUT / name
