"""The demonstration of docs/examples: a rate by event time does not show a restart, by processing time it does."""

from datetime import UTC, datetime, timedelta
from importlib.util import module_from_spec, spec_from_file_location

from tests.support.paths import CHECKOUT

SPEC = spec_from_file_location("restart_spike", CHECKOUT / "docs/examples/restart_spike.py")
restart_spike = module_from_spec(SPEC)
SPEC.loader.exec_module(restart_spike)
TEN = datetime(2026, 11, 10, 10, tzinfo=UTC)


def test_event_and_processing_time():
    clicks = [TEN, TEN + timedelta(seconds=1)]
    found = restart_spike.rates([(at, at + timedelta(seconds=15)) for at in clicks], bucket=5)
    assert (found.clicked, found.processed) == ({0: 2}, {3: 2})


def test_a_restart_is_a_hole_and_a_spike_by_processing_time_and_nothing_by_event_time(settings):
    found = restart_spike.demonstrate(settings, phase=8, bucket=2)
    whole = [found.clicked.get(n, 0) for n in range(1, 11)]
    steady = 2 * restart_spike.PER_SECOND
    assert min(whole) > 0.6 * steady, whole
    assert max(whole) < 1.4 * steady, whole
    assert 0 in [found.processed.get(n, 0) for n in range(5, 9)], found.processed
    assert max(found.processed.values()) > 2 * steady, found.processed
    assert sum(found.processed.values()) == sum(found.clicked.values()), "nothing is lost, whichever clock counts"
