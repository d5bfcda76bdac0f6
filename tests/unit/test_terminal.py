"""What commands print is whole: in a pipe, in a narrow terminal, and whatever a row holds."""

import pytest

from lockstep.terminal import Listing, console, plain

NAME, VALUE = "page_views_per_five_minutes_" * 6, "a" * 90


def printed(capsys: pytest.CaptureFixture[str], *cells: str) -> list[str]:
    listing = Listing("name", "value")
    listing.add_row(*cells)
    console().print(listing)
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "value"]
    return lines


def test_in_a_pipe_a_row_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    (line,) = printed(capsys, NAME, VALUE)
    assert line.split() == [NAME, VALUE]


def test_where_the_width_is_known_cells_go_on_in_the_next_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "50")
    lines = printed(capsys, NAME, VALUE)
    assert max(map(len, lines)) <= 50
    assert "".join(lines).count("a") == NAME.count("a") + VALUE.count("a")


def test_what_a_row_holds_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    (line,) = printed(capsys, "[/red]", "[bold]b[/bold]")
    assert line.split() == ["[/red]", "[bold]b[/bold]"]


def test_the_name_of_a_column_is_no_markup(capsys: pytest.CaptureFixture[str]) -> None:
    console().print(Listing("attributes[color]", "[/b]"))
    assert capsys.readouterr().out.split() == ["attributes[color]", "[/b]"]


def test_control_characters_do_nothing_to_a_terminal() -> None:
    assert str(plain("one\ntwo\r\x00 \x1b[2J 'three' é")) == r"one\ntwo\r\x00 \x1b[2J 'three' é"
