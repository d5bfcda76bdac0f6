"""Bad arguments of `lockstep simulate` are refused with a clear message, before anything is touched."""

import pytest
import typer
from typer.testing import CliRunner

from shop.simulate.commands import simulate

app = typer.Typer()
app.command()(simulate)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--days", "0"],
        ["--late", "1.5"],
        ["--poisoned", "nan"],
        ["--speed", "inf"],
        ["--speed", "-1"],
        ["--seed", "x"],
        ["--sessions-per-order", "0"],
    ],
)
def test_a_value_out_of_range_is_refused_by_its_name(arguments: list[str]) -> None:
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert f"Invalid value for '{arguments[0]}'" in result.output


def test_a_number_of_days_and_all_of_them_contradict_each_other() -> None:
    result = CliRunner().invoke(app, ["--days", "3", "--all"])
    assert result.exit_code == 2
    assert "--all simulates every day" in result.output
