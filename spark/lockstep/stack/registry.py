"""All services of the stack, in the order in which they are shown."""

import sys
from collections.abc import Iterable
from importlib import import_module

from lockstep import heartbeat, project
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import (
    airflow_services,
    broker,
    connect,
    net,
    postgres,
    spark_cluster,
    spark_history,
    spark_server,
    spark_thrift,
)
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


def _monitor(settings: Settings) -> Launch:
    return Launch([sys.executable, "-m", "lockstep.monitor"], cwd=settings.home)


def _metrics(settings: Settings) -> str:
    """Ask the monitor for its metrics."""
    url = f"http://{LOOPBACK}:{settings.metrics_port}/metrics"
    net.ask(url, url)
    return f"metrics at {url}"


# It needs no other service, because it must tell when one of them does not run.
MONITOR = Service(name="monitor", check=_metrics, launch=_monitor, ports=("metrics_port",), megabytes=300)

SERVICES: dict[str, Service] = {
    service.name: service
    for service in (
        postgres.SERVICE,
        broker.SERVICE,
        connect.SERVICE,
        spark_server.SERVICE,
        spark_history.SERVICE,
        spark_thrift.SERVICE,
        *airflow_services.SERVICES,
        LIVE,
        MONITOR,
    )
}

# Also the services of a Spark cluster, which `lockstep up` does not start.
LAUNCHABLE = SERVICES | {service.name: service for service in spark_cluster.SERVICES}


def known() -> dict[str, Service]:
    """The services by name: the platform's, and those of the project: ``SERVICES`` in its ``<package>/services.py``."""
    try:
        package = project.package()
    except project.ProjectInvalid:
        return SERVICES
    if not (project.folder(".") / "services.py").is_file():
        return SERVICES
    return SERVICES | {service.name: service for service in import_module(f"{package}.services").SERVICES}


def select(names: list[str] | None = None) -> list[Service]:
    """The services of these names or groups, and those that they need, which come first.

    When no name is given, all but those that start on demand.

    Raises:
        StackError: there is no service of that name.
    """
    services, selected = known(), dict[str, Service]()

    def add(service: Service) -> None:
        for needed in service.needs:
            add(services[needed])
        selected[service.name] = service

    for service in named(names) if names else services.values():
        if names or not service.on_demand:
            add(service)
    return list(selected.values())


def named(names: Iterable[str]) -> list[Service]:
    """The services of these names or groups, alone.

    Raises:
        StackError: there is no service of that name.
    """
    services, members = known(), [member for name in names for member in GROUPS.get(name, (name,))]
    for name in members:
        if name not in services:
            raise StackError(f"There is no service named {name}.", f"name one of: {', '.join([*services, *GROUPS])}.")
    return [services[name] for name in members]
