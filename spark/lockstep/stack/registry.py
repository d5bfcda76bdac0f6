"""All services of the stack, in the order in which they are shown."""

import sys

from lockstep import heartbeat
from lockstep.settings import Settings
from lockstep.stack import airflow_services, broker, connect, postgres, spark_cluster, spark_server
from lockstep.stack.errors import StackError
from lockstep.stack.services import Launch, Service

GROUPS = {"airflow": tuple(service.name for service in airflow_services.SERVICES)}


def _live(settings: Settings) -> Launch:
    return Launch([sys.executable, "-m", "lockstep.service"], cwd=settings.home)


def _running(_settings: Settings) -> str:
    return "runs"


# `lockstep status` checks its queries. The stack only checks that the process runs and that the Spark server answers it.
LIVE = Service(
    name="live", check=_running, heartbeat=heartbeat.last, launch=_live, needs=("kafka", "spark"), megabytes=300
)

SERVICES: dict[str, Service] = {
    service.name: service
    for service in (
        postgres.SERVICE,
        broker.SERVICE,
        connect.SERVICE,
        spark_server.SERVICE,
        *airflow_services.SERVICES,
        LIVE,
    )
}

# Also the services of a Spark cluster, which `lockstep up` does not start.
LAUNCHABLE = SERVICES | {service.name: service for service in spark_cluster.SERVICES}


def select(names: list[str] | None = None) -> list[Service]:
    """The services of these names or groups, and those that they need, which come first. All when no name is given.

    Raises:
        StackError: there is no service of that name.
    """
    selected: dict[str, Service] = {}

    def add(name: str) -> None:
        if name not in SERVICES:
            known = ", ".join([*SERVICES, *GROUPS])
            raise StackError(f"There is no service named {name}.", f"name one of: {known}.")
        for needed in SERVICES[name].needs:
            add(needed)
        selected[name] = SERVICES[name]

    for name in names or list(SERVICES):
        for member in GROUPS.get(name, (name,)):
            add(member)
    return list(selected.values())
