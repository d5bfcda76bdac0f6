"""``lockstep alerts``: what the sinks (``lockstep.sinks``) have delivered, and what waits or was given up."""

import json
from collections.abc import Iterable
from typing import Annotated

import typer

from lockstep import settings, terminal
from lockstep.control.database import control
from lockstep.kafka_clients import create_topics, latest_by_key
from lockstep.sinks import outbox
from lockstep.sinks.alerts import alerting_views, send_waiting
from lockstep.sinks.kafka_senders import BATCHES, BATCHES_TOPIC
from lockstep.terminal import Listing

app = typer.Typer(help="Alerts and their sinks: the topic, a webhook and e-mail.", no_args_is_help=True)


@app.command()
def show(as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Show each view's delivery and newest batch, and by receiver how many alerts are waiting, sent, dropped and refused."""
    config = settings.load()
    create_topics(config, BATCHES_TOPIC)
    batches = {key.decode(): json.loads(value) for key, value in latest_by_key(config, BATCHES).items()}
    with control(config) as connection:
        direct = outbox.counts(connection)
    views = {name: {"delivery": str(a.delivery), "overload": str(a.overload)} for name, a in alerting_views().items()}
    if as_json:
        typer.echo(json.dumps({"views": views, "batches": batches, "receivers": direct}, indent=2))
        return
    choices = [(name, view["delivery"], view["overload"]) for name, view in views.items()]
    newest = [(name, str(b["batch_id"]), str(b["rows"]), b["at"][:19]) for name, b in sorted(batches.items())]
    counts = [(sink, *(str(states[state]) for state in outbox.State)) for sink, states in direct.items()]
    console = terminal.console()
    console.print(_table("view", "to the topic", "when a receiver is busy", rows=choices))
    console.print(_table("\nsender", "newest batch", "rows", "at (UTC)", rows=newest))
    console.print(_table("\nreceiver", *outbox.State, rows=counts))


@app.command()
def send() -> None:
    """Send the alerts that wait for a receiver, as the live service does every few seconds."""
    typer.echo(f"{send_waiting(settings.load())} alerts were sent.")


def _table(*head: str, rows: Iterable[tuple[str, ...]]) -> Listing:
    table = Listing(*head)
    for row in rows:
        table.add_row(*row)
    return table
