"""The status as a person reads it in a terminal."""

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from lockstep.status.model import Status, age

WIDTH = 120


def render(status: Status) -> RenderableType:
    """One screen: the verdict first, then what it rests on."""
    return Group(_verdict(status), _streams(status), _views(status), _quality(status), _parts(status))


def show(status: Status) -> None:
    """Print the screen."""
    # Piped into a file there is no width to ask for: one that holds the screen.
    console = Console()
    Console(width=max(console.width, WIDTH)).print(render(status))


def _verdict(status: Status) -> Text:
    if status.ok:
        return Text("All is right.", style="bold green")
    return Text("Not all is right:\n" + "\n".join(f"  - {p}" for p in status.problems), style="bold red")


def _streams(status: Status) -> Table:
    table = Table("stream", title="Rows and lag", title_justify="left", box=None, pad_edge=False)
    for name in ("log end", "bronze", "silver", "duplicates", "quarantined", "markers", "lag bronze", "lag silver"):
        table.add_column(name, justify="right")
    table.add_column("fresh", justify="right")
    for s in status.streams:
        counts = (
            s.log_end,
            s.bronze,
            s.silver,
            s.duplicates,
            s.quarantined,
            s.markers,
            s.lag["bronze"],
            s.lag["silver"],
        )
        table.add_row(s.name, *(f"{n:,}" for n in counts), age(s.fresh_at))
    return table


def _views(status: Status) -> Table:
    table = Table("view", title="\nLive against batch", title_justify="left", box=None, pad_edge=False)
    for name in ("counted", "late", "side_output", "lag gold", "lag live", "windows", "unexplained"):
        table.add_column(name, justify="right")
    table.add_column("compared until", no_wrap=True)
    table.add_column("verdict")
    for v in status.views:
        lag = {layer: sum(s.lag.get(f"{layer}.{v.name}", 0) for s in status.streams) for layer in ("gold", "live")}
        counts = (v.counted, v.ignored, v.side_output, lag["gold"], lag["live"], v.windows, v.unexplained)
        style = "green" if v.verdict == "equal" else "yellow" if v.until is None else "red"
        table.add_row(v.name, *(f"{n:,}" for n in counts), (v.until or "-")[:19], Text(v.verdict, style=style))
    return table


def _parts(status: Status) -> Table:
    health = Table("part", "health", title="\nParts", title_justify="left", box=None, pad_edge=False)
    for part, state in status.health.items():
        health.add_row(part, Text(state, style="green" if state == "healthy" else "red"))
    runs = Table("DAG", "last run", title="\nAirflow", title_justify="left", box=None, pad_edge=False)
    for dag, run in status.runs.items():
        runs.add_row(dag, Text(run, style="red" if run.startswith("failed") else ""))
    both = Table.grid(padding=(0, 4))
    both.add_row(health, runs)
    return both


def _quality(status: Status) -> Table:
    table = Table("gate", "newest outcome", title="\nQuality", title_justify="left", box=None, pad_edge=False)
    for name, outcome in status.quality.items():
        table.add_row(name, Text(outcome, style="green" if outcome.startswith("passed") else "red"))
    return table
