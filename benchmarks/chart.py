"""Draw what everything.py measured: of each view and layer, how old events were until they were visible, p50 to p95.

python benchmarks/chart.py 100.json 1000.json --to docs/images/everything-on.png
"""

import json
from pathlib import Path
from typing import Annotated, Any

import altair as alt
import typer

# Seconds, by records a second: what the platform wants to reach on two cores.
GOALS = {100: {"live": 8, "gold": 120}, 1000: {"live": 20, "gold": 150}}


def rows(figures: dict[str, Any]) -> list[dict[str, Any]]:
    """One row for each view and layer of a run."""
    rate = round(figures["rate"])
    return [
        {
            "view": view,
            "layer": f"{layer}, {rate:,}/s",
            "p50": age["p50"],
            "p95": age["p95"],
            "goal": GOALS[rate][layer],
        }
        for view, layers in figures["views"].items()
        for layer, age in layers.items()
        if age
    ]


def main(
    files: Annotated[list[Path], typer.Argument(help="What everything.py has written with --json.")],
    to: Annotated[Path, typer.Option(help="The picture.")],
) -> None:
    """Write the chart: a column for each layer and rate, a line for each view."""
    data = [row for file in files for row in rows(json.loads(file.read_text()))]
    base = alt.Chart().encode(y=alt.Y("view:N", title=None))
    age = base.mark_bar(height=4).encode(x=alt.X("p50:Q", title="seconds, p50 to p95"), x2="p95:Q")
    goal = alt.Chart().mark_rule(color="crimson", strokeDash=[4, 3]).encode(x="goal:Q")
    layers = dict.fromkeys(row["layer"] for row in data)
    facets = alt.layer(age, goal, data=alt.Data(values=data)).properties(width=170, height=340)
    facets.facet(column=alt.Column("layer:N", title=None, sort=[*layers])).resolve_scale(x="independent").save(
        to, scale_factor=2
    )


if __name__ == "__main__":
    typer.run(main)
