"""Turn templates into files, for ``lockstep init`` and ``lockstep new``."""

import re
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from string import Template

from lockstep.definition import check
from lockstep.errors import LockstepError

# What a stream, a view, a column and a package may be called.
NAME = re.compile(check.NAME)
_IMPORTS = re.compile(r"(?:^from .*\n)+", re.MULTILINE)
# The one file that is changed, not made: dbt's list of the tables of silver and gold.
SOURCES = Path("dbt/models/sources.yml")


class NotMade(LockstepError):
    """What was asked for cannot be made; nothing was written."""


def rendered(template: str, words: Mapping[str, str]) -> str:
    """The template of this name (a path below ``templates/``, without ``.tmpl``), filled with the words.

    Imports are sorted again, as their order depends on the name of the project's package.
    """
    text = Template((files("lockstep.new") / "templates" / f"{template}.tmpl").read_text()).substitute(words)
    return _IMPORTS.sub(lambda block: "".join(sorted(block[0].splitlines(keepends=True))), text)


def write(root: Path, texts: Mapping[Path, str]) -> list[Path]:
    """Write the texts below a directory, all of them or none; returns their paths.

    Raises:
        NotMade: one of the files exists already.
    """
    if existing := [str(path) for path in texts if path != SOURCES and (root / path).exists()]:
        raise NotMade(f"{', '.join(existing)} is there already: remove it first, or choose another name.")
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    return list(texts)
