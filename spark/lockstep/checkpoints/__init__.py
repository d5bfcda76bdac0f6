"""The checkpoints of the live queries: list, verify, save, restore, reset, fork, and say what can be resumed."""
