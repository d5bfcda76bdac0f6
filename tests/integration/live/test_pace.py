"""A job whose interval follows the load goes on where it was."""

from lockstep.catalog import connect
from lockstep.definition.tables import live_of
from lockstep.service import members_of
from lockstep.service.job import JobHandle


def test_a_job_gets_another_interval_and_goes_on_from_its_checkpoint(settings, stream, view, shop, rows):
    def happens(event):
        shop.view(event, 0)
        shop.flush()
        handle.running.processAllAvailable()

    with connect(settings, "live") as own:
        handle = JobHandle(members_of(settings, [view]), own)
        handle.supervise(settings, 0, 1)
        happens("e1")
        before = handle.running
        handle.supervise(settings, 1, 3)
        assert handle.running is before, "nobody knows yet what its micro-batches take"

        handle.took = 5.0
        handle.supervise(settings, 1, 3)
        assert handle.running is before, "it would make no difference"

        handle.took = 0.5
        handle.supervise(settings, 1, 3)
        assert (handle.running.id, handle.every, handle.failures) == (before.id, 3, 0)
        assert handle.running.runId != before.runId
        assert not before.isActive
        happens("e2")

        adopted = JobHandle(members_of(settings, [view]), own)
        adopted.supervise(settings, 1, 3)
        assert (adopted.running.runId, adopted.every) == (handle.running.runId, 3)
        adopted.supervise(settings, 1, 1)
        assert (adopted.every, adopted.running.isActive) == (1, True)
        assert adopted.running.runId != handle.running.runId
        adopted.stop()
    assert [row["views"] for row in rows(live_of(view.name))] == [2]
