"""``lockstep readers``: demonstrations of readers on the running broker."""

import typer

from lockstep import settings
from shop.readers import direct, groups, shares

app = typer.Typer(help="Readers outside the platform: demonstrations on topics of their own.", no_args_is_help=True)


@app.command("groups")
def groups_command() -> None:
    """Consumer groups: fan-out, load balancing, and take-over from the last committed offset after a kill -9."""
    groups.demonstrate(settings.load(), typer.echo)


@app.command("shares")
def shares_command() -> None:
    """Share groups: two workers on one partition, release, rejection, and redelivery to the other one after a kill -9."""
    shares.demonstrate(settings.load(), typer.echo)


@app.command("direct")
def direct_command() -> None:
    """Direct messages: a busy webhook, and the three choices: drop, buffer, exert backpressure."""
    direct.demonstrate(settings.load(), typer.echo)
