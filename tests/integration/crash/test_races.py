"""A backfill against live ingest: neither stops the other, and no row is lost or doubled."""

import itertools
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

from tests.integration.crash.flow import drain, violations
from tests.shop import START

from lockstep.batch.rollup import rebuild
from lockstep.ingest import ledger
from lockstep.session import connect


def test_a_backfill_and_live_ingest_leave_no_conflict_and_no_double_row(settings, stream, view, traffic, monkeypatch):
    race(settings, stream, view, traffic, monkeypatch, times=2)


def race(settings, stream, view, traffic, monkeypatch, times):
    """Ingest, refine and roll up a burst while another client rebuilds all of gold; and again."""
    traffic.burst(60)
    drain(settings, stream, view, "live")
    # A rebuild by the code that wrote gold does nothing: let each be by newer code.
    versions = itertools.count()
    monkeypatch.setattr(ledger, "code_version", lambda: f"release {next(versions)}")
    day = START, START + timedelta(days=1)

    def backfill():
        with connect(settings, "backfill") as spark:
            return [rebuild(spark, settings, view, *day, f"backfill {n}") for n in range(2)]

    for _ in range(times):
        traffic.burst(60)
        with ThreadPoolExecutor(2) as threads:
            live, rebuilt = threads.submit(drain, settings, stream, view, "live"), threads.submit(backfill)
        assert live.result() == 3
        assert all(rebuilt.result()), "every rebuild has done something"
        assert violations(settings, stream, view, traffic.sent) == []
