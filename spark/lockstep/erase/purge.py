"""Remove what only old versions of a table still have: the files that they need, and the statistics in the log."""

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from lockstep import lake, ledger
from lockstep.lake.small_commits import SmallCommits

if TYPE_CHECKING:
    from lockstep.settings import Settings


def purge(settings: "Settings", table: str) -> int:
    """Remove all versions of a table but the newest, and return its number. The caller holds the lease of the table.

    The log begins with a checkpoint then: commits of before have statistics of files that are gone. The newest entry of a ledger
    stays, with what came after it; it must come after the commits that removed rows, and older ones must be archived.
    """
    newest = ledger.latest(settings, table)
    version = SmallCommits(settings, table).checkpoint()
    until = min(version, newest.version) if newest else version
    lake.trim(settings, table, until, datetime.now(UTC) + timedelta(minutes=1))
    # Opened again: what knows the older commits would look for them.
    SmallCommits(settings, table).vacuum(0)
    return version
