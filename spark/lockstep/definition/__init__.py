"""What a view is, before any view: its two kinds, and the machinery that both layers share. Pure."""

from lockstep.definition.keyed import Event, Input, Keyed
from lockstep.definition.windowed import Windowed

View = Windowed | Keyed

__all__ = ["Event", "Input", "Keyed", "View", "Windowed"]
