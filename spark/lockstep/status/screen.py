"""Print the status in a terminal."""

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from lockstep import terminal
from lockstep.status.model import HEALTHY, Status, Verdict, age
from lockstep.terminal import Listing

_STYLES = {Verdict.EQUAL: "green", Verdict.NOT_COMPARED: "yellow", Verdict.UNEXPLAINED: "red"}


def show(status: Status) -> None:
    """Print the whole screen."""
    write(status, terminal.console(wide=True))


def write(status: Status, console: Console) -> None:
    """Print the verdict with its problems first, each on one line however long, then a table for each kind of fact."""
    console.print(_verdict(status), soft_wrap=True)
    parts: list[RenderableType] = [_streams(status), _views(status), _quality(status), _services(status)]
    if any(stream.unknown for stream in status.streams):
        parts.insert(1, _unknown(status))
    console.print(Group(*parts))


def _verdict(status: Status) -> Text:
    if status.ok:
        return Text("All is right.", style="bold green")
    return Text("Not all is right:\n" + "\n".join(f"  - {p}" for p in status.problems), style="bold red")


def _streams(status: Status) -> Listing:
    table = Listing("stream", title="Rows and lag")
    for name in (
        "log end",
        "waiting",
        "bronze",
        "silver",
        "duplicates",
        "quarantined",
        "markers",
        "erased",
        "lag bronze",
        "lag silver",
    ):
        table.add_column(name, justify="right")
    table.add_column("fresh", justify="right")
    for s in status.streams:
        counts = (
            s.log_end,
            s.waiting,
            s.bronze,
            s.silver,
            s.duplicates,
            s.quarantined,
            s.markers,
            s.erased,
            s.lag["bronze"],
            s.lag["silver"],
        )
        table.add_row(s.name, *(f"{n:,}" for n in counts), age(s.fresh_at))
    return table


def _unknown(status: Status) -> Listing:
    table = Listing("stream", "rows of silver with each of them", title="\nFields that the contract does not name")
    for s in status.streams:
        if s.unknown:
            by_rows = sorted(s.unknown.items(), key=lambda item: -item[1])
            table.add_row(s.name, ", ".join(f"{name} {rows:,}" for name, rows in by_rows))
    return table


def _views(status: Status) -> Listing:
    table = Listing("view", title="\nLive against batch")
    for name in ("counted", "late", "side output", "lag gold", "lag live", "windows", "unexplained"):
        table.add_column(name, justify="right")
    table.add_column("compared until")
    table.add_column("verdict")
    for v in status.views:
        lag = {layer: sum(s.lag.get(f"{layer}.{v.name}", 0) for s in status.streams) for layer in ("gold", "live")}
        counts = (v.counted, v.ignored, v.side_output, lag["gold"], lag["live"], v.windows, v.unexplained)
        verdict = Text(v.verdict, style=_STYLES[v.verdict])
        table.add_row(
            Text("\n← ".join([v.name, *v.made_from])), *(f"{n:,}" for n in counts), (v.until or "-")[:19], verdict
        )
    return table


def _services(status: Status) -> Table:
    health = Listing("service", "health", title="\nServices")
    for service, state in status.health.items():
        health.add_row(service, Text(state, style="green" if state == HEALTHY else "red"))
    runs = Listing("DAG", "last run", title="\nAirflow")
    for dag, run in status.airflow.runs.items():
        runs.add_row(dag, Text(str(run), style="red" if run.failed else ""))
    side_by_side = Table.grid(padding=(0, 4))
    side_by_side.add_row(health, runs)
    return side_by_side


def _quality(status: Status) -> Listing:
    table = Listing("gate", "newest verdict", title="\nQuality")
    for name, verdict in status.quality.items():
        table.add_row(name, Text(str(verdict), style="green" if verdict.success else "red"))
    return table
