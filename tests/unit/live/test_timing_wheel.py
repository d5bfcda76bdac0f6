"""What waits comes out once, and as soon as it is due."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.state_store import StateStore

from lockstep.live.timing_wheel import OVERDUE, TimingWheel, slot

# Four hours, so that slots of every width are used.
INSTANTS = st.integers(3_600_000, 5 * 3_600_000)


class Waiting:
    """A timing wheel over a state store in memory, with the watermark of a query."""

    def __init__(self):
        self.store = StateStore()
        self.wheel = TimingWheel(self.store, lambda entry: entry["due"])

    def add(self, dues):
        self.wheel.add([{"due": due} for due in dues], self.store.watermark)

    def pass_to(self, now):
        """What comes out when the watermark passes: Spark deletes a timer after its call."""
        self.store.watermark = now
        taken = []
        for timer in sorted(timer for timer in self.store.timers if timer < now):
            taken += [entry["due"] for entry in self.wheel.take(now)]
            self.store.deleteTimer(timer)
        return sorted(taken)


@given(st.lists(st.tuples(st.lists(INSTANTS, max_size=5), st.integers(0, 3_600_000)), max_size=20))
def test_an_entry_comes_out_once_and_with_the_first_watermark_that_has_passed_it(steps):
    waiting, model = Waiting(), []
    for arrived, passed in steps:
        waiting.add(arrived)
        model += arrived
        now = waiting.store.watermark + passed
        out = waiting.pass_to(now)
        # Spark calls a timer only when the watermark is after it.
        assert [due for due in out if due < now] == sorted(due for due in model if due < now)
        for due in out:
            model.remove(due)
            assert due <= now
    waiting.pass_to(10**9)
    assert not waiting.store.timers, "nothing waits, so nothing is to be called"
    assert waiting.wheel._index.get() is None
    assert waiting.store.maps[0].values == {}


@given(st.lists(INSTANTS, min_size=1), INSTANTS)
def test_one_timer_waits_however_much_waits(dues, now):
    waiting = Waiting()
    waiting.store.watermark = now
    for due in dues:
        waiting.add([due])
    (timer,) = waiting.store.timers
    assert timer == OVERDUE if min(dues) <= now else now < timer <= min(dues)


@given(INSTANTS, INSTANTS)
def test_a_slot_is_wide_only_far_from_the_present(due, now):
    ahead, behind = due - now, due - slot(due, now)
    assert behind >= 0
    assert ahead <= 0 or behind < 1_000 or (ahead >= 60_000 and behind < 60_000) or ahead >= 3_600_000
