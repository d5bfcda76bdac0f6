"""A job that gets another interval for the load goes on where it was, and the next service knows for which load it runs."""

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
        handle.supervise(settings, 1, 2)
        handle.supervise(settings, 1, 2, is_high=False)
        assert handle.running is before, "it was started for such a load"

        handle.supervise(settings, 1, 3, is_high=True)
        assert (handle.running.id, handle.for_high_load, handle.failures) == (before.id, True, 0)
        assert handle.running.runId != before.runId
        assert not before.isActive
        happens("e2")

        adopted = JobHandle(members_of(settings, [view]), own)
        adopted.supervise(settings, 1, 1)
        adopted.supervise(settings, 1, 3, is_high=True)
        assert adopted.running.runId == handle.running.runId, "the load is not known yet, and then it is the same"
        adopted.supervise(settings, 1, 1, is_high=False)
        assert (adopted.for_high_load, adopted.running.isActive) == (False, True)
        assert adopted.running.runId != handle.running.runId
        adopted.stop()
    assert [row["views"] for row in rows(live_of(view.name))] == [2]
