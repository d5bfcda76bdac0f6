"""The record of a reconciliation survives the commit that holds it."""

import json
from datetime import UTC, datetime

from lockstep.reconcile.difference import Cause
from lockstep.reconcile.record import Reconciliation

RECONCILIATION = Reconciliation(
    view="page_views_per_minute",
    until=datetime(2026, 1, 1, 12, tzinfo=UTC),
    run_id="run",
    windows=30,
    unexplained=1,
    causes={Cause.LATE: 2},
    sample="k: live 3, batch 2: no known cause",
)


def test_a_reconciliation_is_read_back_as_it_was_written():
    record = json.loads(json.dumps(RECONCILIATION.as_record()))
    assert Reconciliation.from_record(record) == RECONCILIATION


def test_the_record_names_the_causes_as_people_read_them():
    record = RECONCILIATION.as_record()
    assert record["until"] == "2026-01-01T12:00:00+00:00"
    assert record["causes"] == {"late": 2}
