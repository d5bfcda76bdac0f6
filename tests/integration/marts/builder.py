"""Build the marts of a test in a process group of its own, which a failpoint kills: ``python -m … <stream> <project>``."""

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from tests.support.marts import Orders
from tests.support.paths import CHECKOUT

from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.failpoints import VARIABLE
from lockstep.marts import run as marts
from lockstep.results import Results


def killed_at(point: str, orders: Orders) -> None:
    """Build what was touched until the failpoint has killed the process."""
    command = [sys.executable, "-m", "tests.integration.marts.builder", orders.contract.name]
    environment = os.environ | {VARIABLE: point}
    project = str(orders.settings.project)
    process = subprocess.Popen([*command, project], cwd=CHECKOUT, env=environment, start_new_session=True)
    assert process.wait(300) == -signal.SIGKILL, f"it ended before {point}"


def main(stream: str, project: str) -> None:
    """Build what was touched."""
    settings = configuration.load().model_copy(update={"project": Path(project)})
    CONTRACTS[stream] = replace(CONTRACTS["orders"], name=stream, topic=stream)
    with connect(settings, "marts") as spark:
        marts.bring_up(spark, settings, "killed", Results())


if __name__ == "__main__":
    main(*sys.argv[1:])
