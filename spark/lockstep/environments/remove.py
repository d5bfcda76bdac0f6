"""Remove an environment: its names in Spark's catalog, its lake, and its control database, by which it is known."""

from typing import TYPE_CHECKING

from lockstep import lake
from lockstep.catalog import connect
from lockstep.control import environments
from lockstep.control.leases import lease
from lockstep.environments.apply import LEASE
from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from lockstep.settings import Settings

_WAIT_SECONDS = 5


class EnvironmentMissing(LockstepError):
    """There is no environment of that name."""


def ensure_there(settings: "Settings") -> None:
    """Check that the environment has been applied.

    Raises:
        EnvironmentMissing: it has not.
    """
    if not environments.exists(settings):
        raise EnvironmentMissing(
            f"There is no environment {settings.env}: make it with `lockstep --env {settings.env} apply`."
        )


def remove(settings: "Settings") -> None:
    """Remove all that the environment has. Its database is the last: a removal that was cut short can be run again.

    Raises:
        EnvironmentMissing: there is none.
        LeaseHeld: it is being applied.
    """
    ensure_there(settings)
    with lease(settings, LEASE, "remove", _WAIT_SECONDS):
        with connect(settings, "remove") as spark:
            lake.forget(spark, settings)
        lake.remove(settings.lake)
        # It ends the connection of the lease as well.
        environments.drop(settings)
