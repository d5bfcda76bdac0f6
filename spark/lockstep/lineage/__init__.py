"""The lineage: which tables a step reads and writes, and what a run has written, for tools that show it."""
