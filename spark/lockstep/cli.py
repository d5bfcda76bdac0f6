"""``lockstep``: one command line, composed of the commands of each area."""

import typer

from lockstep.check import check
from lockstep.checkpoints import commands as checkpoints
from lockstep.deliver import commands as alerts
from lockstep.demo.commands import demo
from lockstep.entry import run
from lockstep.ingest import commands as ledger
from lockstep.new import commands as new
from lockstep.readers import commands as readers
from lockstep.reconcile.commands import reconcile
from lockstep.replay import commands as replay
from lockstep.serving.commands import serving
from lockstep.simulate.commands import simulate
from lockstep.stack import commands as stack
from lockstep.status.commands import lag, status

app = typer.Typer(no_args_is_help=True, pretty_exceptions_enable=False, help=__doc__)
app.command()(demo)
app.command()(simulate)
app.command()(status)
app.command()(reconcile)
app.command()(serving)
app.command()(check)
app.add_typer(new.app, name="new")
ledger.app.command()(lag)
app.add_typer(ledger.app, name="ledger")
app.add_typer(checkpoints.app, name="checkpoints")
app.add_typer(alerts.app, name="alerts")
app.add_typer(readers.app, name="readers")
app.add_typer(replay.app, name="replay")
app.registered_commands += stack.app.registered_commands

if __name__ == "__main__":
    run(app)
