"""``lockstep demo``."""

from typing import Annotated

import typer

from lockstep import settings, terminal
from lockstep.settings import LOOPBACK
from lockstep.status.screen import show
from shop.demo.facts import acknowledged
from shop.demo.run import Demo, DemoFailed


def demo(
    days: Annotated[int | None, typer.Option(min=1, max=374, help="Simulate the last N days; 28 at first.")] = None,
) -> None:
    """Start everything, simulate the shop, and prove that live and batch agree. After that, the shop stays open."""
    console = terminal.console()
    demonstration = Demo(settings.load(), console, days)
    status = demonstration.run()
    own = demonstration.stack.settings
    show(status)
    if problems := acknowledged(own) + [str(problem) for problem in status.problems]:
        raise DemoFailed("The sums do not add up:\n  " + "\n  ".join(problems))
    demonstration.open_shop()
    console.print(
        f"\nAirflow     {own.airflow_url}  (user admin; the password is "
        f"LOCKSTEP_AIRFLOW_PASSWORD in {own.secrets_file})\n"
        f"Spark       http://{LOOPBACK}:{own.spark_ui_port}\n"
        f"Data docs   {(own.home / 'data_docs' / 'index.html').as_uri()}\n"
        f"dbt docs    {(own.home / 'dbt_docs' / 'index.html').as_uri()}\n"
        "The shop is open now, and new rows come in: `lockstep status` shows how they get on, and `lockstep logs shop` the shop. "
        "`lockstep down shop` closes it, and `lockstep up shop` opens it again. `make down` stops all; `lockstep up` goes on."
    )
