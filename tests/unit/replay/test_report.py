"""The plan and the diff as somebody reads them who decides: values are shown, and never read as markup."""

from rich.console import Console

from lockstep.replay.report import diff_as_markdown, diff_as_table
from lockstep.replay.stages import Compared, TableDiff

SAMPLE = '2026-11-10 10:00:00: changed, such as {"page":"`{{ x }}` [bold]/[/bold]\x1b[2J"}'
COMPARED = Compared(
    tables={"gold.v": TableDiff(windows=10, equal=8, changed=2, samples=(SAMPLE,))},
    changed=2,
    windows=10,
    checks={"gold.v": ("page is null",)},
)


def printed(renderable) -> str:
    console = Console(width=200, force_terminal=True, color_system=None)
    with console.capture() as capture:
        console.print(renderable)
    return capture.get()


def test_the_diff_is_a_table_whose_values_are_not_read_as_markdown():
    text = diff_as_markdown("abc", COMPARED)
    assert "2 of 10 windows would change" in text
    assert "| gold.v | 10 | 8 | 2 | 0 | 0 |" in text
    assert "'{{ x }}'" in text
    assert "fails its suite: `page is null`" in text


def test_the_terminal_shows_markup_as_text_and_control_characters_as_escapes():
    text = printed(diff_as_table(COMPARED))
    assert "`{{ x }}` [bold]/[/bold]\\x1b[2J" in text
    assert "\x1b[2J" not in text
    assert "gold.v fails its suite: page is null" in text
