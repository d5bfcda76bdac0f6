"""The shop's own commands, which ``lockstep`` offers beside the platform's."""

import typer

from shop.demo.commands import demo
from shop.readers import commands as readers
from shop.simulate.commands import simulate

app = typer.Typer()
app.command()(demo)
app.command()(simulate)
app.add_typer(readers.app, name="readers")
