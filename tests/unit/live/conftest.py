"""Give the tests a checkpoint as Spark leaves it."""

from tests.support.checkpoints import root

__all__ = ["root"]
