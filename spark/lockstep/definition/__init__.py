"""What a view is: its two kinds, and the code that both layers share. Pure."""

from lockstep.definition.keyed import Event, Input, Keyed
from lockstep.definition.map_state import MapState
from lockstep.definition.windowed import Windowed

View = Windowed | Keyed

__all__ = ["Event", "Input", "Keyed", "MapState", "View", "Windowed"]
