"""Environments: a sample of production's records in a lake of its own, on which a changed view is tried before it is applied."""
