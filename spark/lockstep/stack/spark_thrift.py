"""The Thrift server as a service: `python -m lockstep.thrift`. It starts on demand, and takes no part in the pipeline."""

import sys

from pydantic import SecretStr

from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import net
from lockstep.stack.errors import Unhealthy
from lockstep.stack.services import Launch, Service
from lockstep.stack.spark_server import asked, prepare

# An empty database of its catalog: it exists once all names are there.
FILLED = "filled"


def remote(settings: Settings) -> Settings:
    """The settings with which a client of Spark Connect reaches the Thrift server."""
    own = {"spark_remote": f"sc://{LOOPBACK}:{settings.thrift_connect_port}", "spark_token": SecretStr("")}
    return settings.model_copy(update=own)


def check(settings: Settings) -> str:
    """Ask it whether it has the names of the tables."""
    net.reach(LOOPBACK, settings.thrift_port)
    with asked(remote(settings)) as spark:
        filled = spark.catalog.databaseExists(FILLED)
    if not filled:
        raise Unhealthy("the Thrift server does not know the tables yet")
    return f"reads the lake at jdbc:hive2://{LOOPBACK}:{settings.thrift_port}"


def launch(settings: Settings) -> Launch:
    """The process that starts the server and tells it the names of the tables."""
    return Launch([sys.executable, "-m", "lockstep.thrift"], cwd=settings.home)


SERVICE = Service(
    name="thrift",
    check=check,
    launch=launch,
    prepare=prepare,
    needs=("spark",),
    ports=("thrift_port", "thrift_connect_port"),
    megabytes=1500,
    on_demand=True,
)
