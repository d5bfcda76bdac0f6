"""All the parts of the stack, in the order in which they are shown."""

import sys

from lockstep import heartbeat
from lockstep.settings import Settings
from lockstep.stack import airflow, broker, connect, postgres, spark_cluster, spark_server
from lockstep.stack.errors import StackError
from lockstep.stack.parts import Launch, Part

GROUPS = {"airflow": tuple(part.name for part in airflow.PARTS)}


def _live(settings: Settings) -> Launch:
    return Launch([sys.executable, "-m", "lockstep.service"], cwd=settings.home)


def _runs(_settings: Settings) -> str:
    return "runs"


# Its queries answer for themselves in `lockstep status`; here it is a process that must stay up, and know the server.
LIVE = Part(name="live", check=_runs, beat=heartbeat.last, launch=_live, needs=("kafka", "spark"), megabytes=300)

PARTS: dict[str, Part] = {
    part.name: part for part in (postgres.PART, broker.PART, connect.PART, spark_server.PART, *airflow.PARTS, LIVE)
}

# With those that are no parts of the embedded stack, but of a cluster.
LAUNCHABLE = PARTS | {part.name: part for part in spark_cluster.PARTS}


def select(names: list[str] | None = None) -> list[Part]:
    """The parts of these names (or groups; all when none is named) and those that they need, needed ones first.

    Raises:
        StackError: there is no part of that name.
    """
    wanted: dict[str, Part] = {}

    def add(name: str) -> None:
        if name not in PARTS:
            known = ", ".join([*PARTS, *GROUPS])
            raise StackError(f"There is no part named {name}.", f"name one of: {known}.")
        for needed in PARTS[name].needs:
            add(needed)
        wanted[name] = PARTS[name]

    for name in names or list(PARTS):
        for member in GROUPS.get(name, (name,)):
            add(member)
    return list(wanted.values())
