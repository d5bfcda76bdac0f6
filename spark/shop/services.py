"""What the shop adds to the stack, once somebody starts it: it is open (``shop``), and decides commands (``commands``)."""

import sys

from lockstep.settings import Settings
from lockstep.stack.services import Launch, Service

# Modest: two cores run all views beside it.
RECORDS_A_SECOND = 5


def _open(settings: Settings) -> Launch:
    command = ["-P", "-m", "lockstep.cli", "simulate", "--live", f"--rate={RECORDS_A_SECOND}"]
    return Launch([sys.executable, *command], cwd=settings.home)


def _is_open(_settings: Settings) -> str:
    return f"open: {RECORDS_A_SECOND} records a second"


SHOP = Service(name="shop", check=_is_open, launch=_open, needs=("postgres", "kafka"), megabytes=300, on_demand=True)


def _decide(settings: Settings) -> Launch:
    return Launch([sys.executable, "-P", "-m", "lockstep.cli", "commands", "run"], cwd=settings.home)


def _decides(_settings: Settings) -> str:
    return "decides commands"


COMMANDS = Service(name="commands", check=_decides, launch=_decide, needs=("kafka",), megabytes=200, on_demand=True)
SERVICES = (SHOP, COMMANDS)
