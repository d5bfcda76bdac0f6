"""For the tests of a project: made-up records, a Spark server of their own, and a view's rows as the batch layer has them."""

from lockstep.testing.records import Sent, made_up
from lockstep.testing.rows import batch_rows, comparable
from lockstep.testing.server import spark_server

__all__ = ["Sent", "batch_rows", "comparable", "made_up", "spark_server"]
