"""The status as a person reads it in a terminal."""

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from lockstep.status.model import Status, age


def render(status: Status) -> RenderableType:
    """One screen: the verdict first, then what it rests on."""
    return Group(_verdict(status), _streams(status), _views(status), _parts(status))


def show(status: Status) -> None:
    """Print the screen."""
    Console().print(render(status))


def _verdict(status: Status) -> Text:
    if status.ok:
        return Text("All is right.", style="bold green")
    return Text("Not all is right:\n" + "\n".join(f"  - {p}" for p in status.problems), style="bold red")


def _streams(status: Status) -> Table:
    table = Table("stream", title="Rows and lag", title_justify="left", box=None, pad_edge=False)
    for name in ("log end", "bronze", "silver", "duplicates", "quarantined", "control", "lag bronze", "lag silver"):
        table.add_column(name, justify="right")
    table.add_column("lag by view")
    table.add_column("fresh", justify="right")
    for s in status.streams:
        views = ", ".join(f"{k} {v:,}" for k, v in s.lag.items() if "." in k)
        counts = (
            s.log_end,
            s.bronze,
            s.silver,
            s.duplicates,
            s.quarantined,
            s.control,
            s.lag["bronze"],
            s.lag["silver"],
        )
        table.add_row(s.name, *(f"{n:,}" for n in counts), views, age(s.fresh_at))
    return table


def _views(status: Status) -> Table:
    table = Table("view", title="\nLive against batch", title_justify="left", box=None, pad_edge=False)
    for name in ("counted", "ignored (late)", "side", "windows compared", "unexplained"):
        table.add_column(name, justify="right")
    table.add_column("closed until (UTC)")
    table.add_column("verdict")
    for v in status.views:
        counts = (v.counted, v.ignored, v.side, v.windows, v.unexplained)
        style = "green" if v.verdict == "equal" else "yellow" if v.until is None else "red"
        table.add_row(v.name, *(f"{n:,}" for n in counts), (v.until or "-")[:19], Text(v.verdict, style=style))
    return table


def _parts(status: Status) -> Table:
    table = Table.grid(padding=(0, 4))
    health = Table("part", "health", title="\nParts", title_justify="left", box=None, pad_edge=False)
    for part, state in status.health.items():
        health.add_row(part, Text(state, style="green" if state == "healthy" else "red"))
    runs = Table("DAG", "last run", title="\nAirflow", title_justify="left", box=None, pad_edge=False)
    for dag, run in status.runs.items():
        runs.add_row(dag, Text(run, style="red" if run.startswith("failed") else ""))
    quality = Table("gate", "outcome", title="\nQuality", title_justify="left", box=None, pad_edge=False)
    for name, outcome in status.quality.items():
        quality.add_row(name, Text(outcome, style="green" if outcome.startswith("passed") else "red"))
    table.add_row(health, runs, quality)
    return table
