"""Who holds a lease is seen by a command, and a holder that hangs is ended by one."""

import psycopg2
import pytest
from typer.testing import CliRunner

from lockstep.cli.leases import app
from lockstep.control.leases import lease
from lockstep.errors import LeaseHeld, LockstepError
from lockstep.live import lease as live_lease


def leases(*arguments):
    return CliRunner().invoke(app, arguments, catch_exceptions=False).stdout


@pytest.fixture(autouse=True)
def here(settings, monkeypatch):
    monkeypatch.setattr("lockstep.settings.load", lambda: settings)


def test_holders_are_listed_with_what_they_hold_and_one_that_hangs_is_ended(settings, spark, stream, view):
    checkpoint = f"checkpoint:{view.name}"
    with lease(settings, [checkpoint, "ops.quality"], "run 7") as connection:
        lines = [line for line in leases("list").splitlines() if "run 7" in line]
        assert any(line.startswith(f"{checkpoint}: lockstep:{checkpoint}:"[:60]) for line in lines)
        with pytest.raises(LeaseHeld, match=rf"run 7.*leases end {checkpoint}`"):
            live_lease.ensure_free(settings, [view.name])
        assert "was ended" in leases("end", checkpoint, "--yes")
        with pytest.raises(psycopg2.OperationalError, match=r"terminating connection|closed the connection"):
            connection.cursor().execute("SELECT 1")
    live_lease.ensure_free(settings, [view.name])
    with pytest.raises(LockstepError, match=f"Nobody holds {checkpoint}"):
        leases("end", checkpoint, "--yes")
