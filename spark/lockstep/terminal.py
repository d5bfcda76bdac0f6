"""What commands print: tables whose cells are never cut, and text that is shown as it is.

What a row of the lake holds is not read as rich's markup, and does nothing to a terminal.
"""

import os
import sys
from typing import Any

from rich.console import Console, RenderableType
from rich.style import StyleType
from rich.table import Table
from rich.text import Text

# Wider than any table. A pipe has no width of its own: rich would take 80 columns, and `grep` would not find a name that is cut.
_WIDE = 10_000


def console(wide: bool = False) -> Console:
    """A console that breaks no line. Tables fit into the terminal, or into ``COLUMNS``; in a pipe, they are as wide as they need.

    Args:
        wide: that wide in a terminal too, which then breaks the lines: for names and numbers, which say nothing in pieces.
    """
    fits = not wide and (sys.stdout.isatty() or "COLUMNS" in os.environ)
    return Console(highlight=False, soft_wrap=True, width=None if fits else _WIDE)


def plain(text: str) -> Text:
    """Text without markup. Control characters are shown as their escapes, so that they do nothing to a terminal."""
    return Text("".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text))


class Listing(Table):
    """A table without lines. In a terminal that is too narrow, a long cell goes on in the next line of its row."""

    def __init__(self, *columns: str, title: str | None = None) -> None:
        super().__init__(*columns, box=None, pad_edge=False, title=title, title_justify="left")

    def add_column(self, header: RenderableType = "", footer: RenderableType = "", **options: Any) -> None:
        """Add a column, with rich's options; its name is no markup either."""
        shown = Text(header) if isinstance(header, str) else header
        super().add_column(shown, footer, **{"overflow": "fold", **options})

    def add_row(self, *cells: RenderableType | None, style: StyleType | None = None, end_section: bool = False) -> None:
        """Add a row; a cell that is a ``str`` is shown as by :func:`plain`."""
        shown = (plain(cell) if isinstance(cell, str) else cell for cell in cells)
        super().add_row(*shown, style=style, end_section=end_section)
