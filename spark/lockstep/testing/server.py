"""A Spark server for tests, which is the one that ``lockstep up`` starts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep import settings as configuration
from lockstep.session import connect

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def spark_server(home: Path) -> "Iterator[SparkSession]":
    """Start the platform's Spark server on free ports and on a home of its own, give a session, and remove all of it.

    It takes about ten seconds. No other service is started, and no lake or server of the settings is touched.
    """
    from lockstep.stack import net
    from lockstep.stack.stack import Stack

    own = configuration.load().model_copy(update=_own(home, net.free_port(), net.free_port()))
    stack = Stack(own)
    try:
        stack.up(["spark"], lambda _: None)
        with connect(own, "test") as session:
            yield session
    finally:
        stack.reset(lambda _: None)


def _own(home: Path, port: int, ui_port: int) -> dict[str, object]:
    return {
        "home": home,
        "lake": str(home / "lake"),
        "spark_port": port,
        "spark_ui_port": ui_port,
        "spark_remote": f"sc://{configuration.LOOPBACK}:{port}",
    }
