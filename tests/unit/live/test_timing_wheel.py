"""What waits comes out once, and as soon as it is due by its clock."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.state_store import StateStore

from lockstep.live.timing_wheel import TimingWheel, slot

# Four hours, so that slots of every width are used.
INSTANTS = st.integers(3_600_000, 5 * 3_600_000)
CLOCKS = st.sampled_from(["clicks", "orders,views"])


class Waiting:
    """A timing wheel over a state store in memory, as a micro-batch uses it."""

    def __init__(self):
        self.store, self.now = StateStore(), {"clicks": 0, "orders,views": 0}
        self.wheel = TimingWheel(self.store, lambda entry: (entry["clock"], entry["due"]))

    def micro_batch(self, arrived, now):
        """What is due among what has waited and what arrives."""
        self.now |= now
        entries = [*self.wheel.take(self.now), *({"clock": clock, "due": due} for clock, due in arrived)]
        is_due = [entry["due"] <= self.now.get(entry["clock"], 0) for entry in entries]
        self.wheel.add(self.now, (entry for entry, due in zip(entries, is_due, strict=True) if not due))
        return sorted((e["clock"], e["due"]) for e, due in zip(entries, is_due, strict=True) if due)


@given(st.lists(st.tuples(st.lists(st.tuples(CLOCKS, INSTANTS), max_size=5), CLOCKS, INSTANTS), max_size=20))
def test_an_entry_comes_out_once_and_as_soon_as_its_clock_has_passed_it(steps):
    waiting, model = Waiting(), []
    for arrived, clock, shown in steps:
        model += arrived
        now = {clock: max(shown, waiting.now.get(clock, 0))}
        due = sorted((c, at) for c, at in model if at <= (waiting.now | now).get(c, 0))
        assert waiting.micro_batch(arrived, now) == due
        for one in due:
            model.remove(one)
    assert waiting.micro_batch([], {"clicks": 10**9, "orders,views": 10**9}) == sorted(model)
    assert waiting.store.maps[0].values == {}, "nothing waits, so nothing is kept"


@given(st.lists(st.tuples(CLOCKS, INSTANTS)))
def test_what_waits_by_a_clock_that_nobody_follows_any_more_comes_out_at_once(arrived):
    waiting = Waiting()
    waiting.micro_batch(arrived, {})
    assert sorted(e["due"] for e in waiting.wheel.take({"clicks": 0})) == sorted(d for c, d in arrived if c != "clicks")


@given(INSTANTS, INSTANTS)
def test_a_slot_is_wide_only_far_from_the_present(due, now):
    ahead, behind = due - now, due - slot(due, now)
    assert behind >= 0
    assert behind < 1_000 or (ahead >= 60_000 and behind < 60_000) or ahead >= 3_600_000
