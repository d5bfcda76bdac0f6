"""Overlapping windows made of panes, the parts of the time that they share: each row is counted once, and not in each window.

J. Li, D. Maier, K. Tufte, V. Papadimos, P. Tucker: "No Pane, No Gain: Efficient Evaluation of Sliding-Window Aggregates over Data
Streams", SIGMOD Record 34 (1), 2005. This is for batch: a live query can aggregate only once. Pure.
"""

from dataclasses import dataclass, replace
from datetime import timedelta

from lockstep.definition.mergeable import Mergeable
from lockstep.definition.windowed import Windowed


@dataclass(frozen=True, kw_only=True)
class _OverPanes(Windowed):
    """A view whose rows are panes, of rows that count."""

    @property
    def on_time(self) -> str:
        return "true"


def panes(view: Windowed) -> tuple[Windowed, Windowed] | None:
    """The view as two: the panes of its rows, as long as its slide, and its windows over these panes.

    None if its windows do not overlap, are no whole number of panes, or if one of its measures cannot be made of parts.
    """
    if view.slide >= view.size or view.size % view.slide != timedelta(0):
        return None
    columns, measures = dict[str, str](), dict[str, str | Mergeable]()
    for name, measure in view.measures.items():
        if not isinstance(measure, Mergeable):
            return None
        # Several measures may have one part in common, such as the number of rows.
        names = [columns.setdefault(part, f"_{name}_{number}") for number, (part, _) in enumerate(measure.parts)]
        measures[name] = measure.merged([f"`{column}`" for column in names])
    parts = {column: part for part, column in columns.items()}
    of_rows = replace(view, size=view.slide, measures=parts, result=None)
    by = {name: f"`{name}`" for name in view.by}
    return of_rows, _OverPanes(
        **vars(view) | {"event_time": "window_start", "where": "true", "by": by, "measures": measures}
    )
