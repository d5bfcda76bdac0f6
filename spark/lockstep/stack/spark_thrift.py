"""The Thrift server as a service: `python -m lockstep.thrift`. It starts on demand, and takes no part in the pipeline."""

import sys
from pathlib import Path

from pydantic import SecretStr

from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import net
from lockstep.stack.errors import Unhealthy
from lockstep.stack.services import Launch, Service
from lockstep.stack.spark_server import asked, prepare


def scratch(settings: Settings) -> Path:
    """The one directory that the server may write to. It is new at each start."""
    return settings.home / "tmp" / "thrift"


def filled(settings: Settings) -> Path:
    """An empty file that is there once the server has all names. To ask a server that is still busy with them slows it down."""
    return scratch(settings) / "filled"


def remote(settings: Settings) -> Settings:
    """The settings with which a client of Spark Connect reaches the Thrift server."""
    own = {"spark_remote": f"sc://{LOOPBACK}:{settings.thrift_connect_port}", "spark_token": SecretStr("")}
    return settings.model_copy(update=own)


def check(settings: Settings) -> str:
    """Ask it something, once it has the names of the tables."""
    net.reach(LOOPBACK, settings.thrift_port)
    if not filled(settings).exists():
        raise Unhealthy("the Thrift server does not know the tables yet")
    with asked(remote(settings)) as spark:
        spark.catalog.currentDatabase()
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
