"""The checkpoints of the live queries: list, verify, inspect, save, restore, reset and fork them."""
