"""``lockstep readers``: how others may read, shown on the running broker."""

import typer

from lockstep import settings
from shop.readers import direct, groups, shares

app = typer.Typer(help="How readers outside take part: demonstrations on topics of their own.", no_args_is_help=True)


@app.command("groups")
def groups_command() -> None:
    """Consumer groups: fan-out, load balancing, and take-over from the last committed offset after a kill -9."""
    groups.demonstrate(settings.load(), typer.echo)


@app.command("shares")
def shares_command() -> None:
    """Share groups: two workers on one partition, release, rejection, and redelivery to another one after a kill -9."""
    shares.demonstrate(settings.load(), typer.echo)


@app.command("direct")
def direct_command() -> None:
    """Direct messages: a webhook that is busy, and the three choices: drop, buffer, exert backpressure."""
    direct.demonstrate(settings.load(), typer.echo)
