"""``lockstep simulate``."""

import signal
import threading
from datetime import timedelta
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from lockstep import settings
from shop.simulate.keep_open import Pace, keep_open
from shop.simulate.plan import Amounts
from shop.simulate.producer import BulkSender, KafkaPythonSender
from shop.simulate.simulation import RunStatus, is_finished, run_simulation

# A slice is sent and acknowledged as a whole: an hour shows progress, a day keeps librdkafka busy.
_SLICE, _BULK_SLICE = timedelta(hours=1), timedelta(days=1)


def simulate(
    days: Annotated[int | None, typer.Option(min=1, max=374, help="Simulate the last N days; 28 at first.")] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Simulate the whole history, a year and nine days.")
    ] = False,
    speed: Annotated[
        float | None,
        typer.Option(min=0.001, max=1e9, help="Simulated seconds per second; else as fast as possible."),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Of names and traffic; 7 at first.")] = None,
    sessions_per_order: Annotated[int | None, typer.Option(min=1, max=1000, help="Visits around an order; 2.")] = None,
    sensors: Annotated[int | None, typer.Option(min=0, max=1000, help="Sensors in the warehouse; 4.")] = None,
    sensor_interval: Annotated[
        int | None, typer.Option(min=1, max=86_400, help="Seconds between two readings; 1800.")
    ] = None,
    duplicates: Annotated[float | None, typer.Option(min=0, max=1, help="Share sent twice; 0.05.")] = None,
    late: Annotated[float | None, typer.Option(min=0, max=1, help="Share that arrives late; 0.01.")] = None,
    poisoned: Annotated[
        float | None, typer.Option(min=0, max=1, help="Share of broken records that are added; 0.001.")
    ] = None,
    bulk: Annotated[bool, typer.Option("--bulk", help="Send with librdkafka, in slices of a day.")] = False,
    live: Annotated[bool, typer.Option("--live", help="After the history, go on in real time until Ctrl-C.")] = False,
    rate: Annotated[float, typer.Option(min=0.1, max=1e5, help="With --live: records a second, on average.")] = 20,
    burst: Annotated[
        float, typer.Option(min=1, max=100, help="With --live: so many times as many visits begin, 10 s a minute.")
    ] = 1,
) -> None:
    """Simulate the shop: orders into PostgreSQL, traffic into Kafka. Goes on where it stopped, with the same amounts.

    With --live the amounts are those of the real time, and may differ from those of a history that is finished.
    """
    if everything and days is not None:
        raise typer.BadParameter("--all simulates every day: leave out --days, or --all")
    options = {
        "days": days,
        "seed": seed,
        "sessions_per_order": sessions_per_order,
        "sensors": sensors,
        "sensor_interval": sensor_interval,
        "duplicates": duplicates,
        "late": late,
        "poisoned": poisoned,
    }
    wanted: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    if everything:
        wanted["days"] = None
    config, console = settings.load(), Console()
    if not (live and is_finished(config)):
        _history(config, console, wanted, bulk, speed)
    if live:
        _real_time(config, console, rate, burst, {k: v for k, v in wanted.items() if k in Amounts.model_fields})


def _history(
    config: settings.Settings, console: Console, wanted: dict[str, Any], bulk: bool, speed: float | None
) -> None:
    width = _BULK_SLICE if bulk else _SLICE
    sender = BulkSender if bulk else KafkaPythonSender
    if speed is not None:
        width = min(width, max(timedelta(seconds=1), timedelta(seconds=speed)))
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rows]}"), TimeElapsedColumn()
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("opening the shop", total=1.0, rows="")
        for status in run_simulation(config, wanted, sender, width, speed):
            rows = f"{status.order_lines:,} order lines, {status.records.total():,} events"
            bar.update(task, completed=status.share, description=f"{status.until:%Y-%m-%d %H:%M}", rows=rows)
    _summarise(console, status)


def _real_time(config: settings.Settings, console: Console, rate: float, burst: float, amounts: dict[str, Any]) -> None:
    stopping = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopping.set())
    console.print(f"The shop is open: {rate:g} records a second. Close it with Ctrl-C.")
    with console.status("") as line:
        for sent in keep_open(config, Pace(rate, burst, amounts), stopping):
            line.update(f"{sent.records.total():,} events, {sent.orders:,} orders")


def _summarise(console: Console, status: RunStatus) -> None:
    span = f"{status.plan.start:%Y-%m-%d %H:%M} to {status.plan.end:%Y-%m-%d %H:%M} UTC"
    if not status.records:
        console.print(f"Nothing to do: {span} has been simulated to its end.")
        return
    console.print(f"Simulated {span}: {status.order_lines:,} order lines written to PostgreSQL; acknowledged by Kafka:")
    for topic, count in sorted(status.records.items()):
        console.print(f"  {topic:<12} {count:>9,}")
