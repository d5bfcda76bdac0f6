"""Redo history safely: plan, shadow, diff, promote, undo."""
