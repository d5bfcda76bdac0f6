"""The live operator: which events count is decided by the log, and they reach their machine in the order of their times."""

from collections import defaultdict
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.support.state_store import StateStore, as_rows

from lockstep.definition import Input, Keyed, states
from lockstep.definition.events import LIVE_COLUMNS
from lockstep.live.machine import Machines
from lockstep.live.watermarks import EventStream

LIMIT, BOUND = 5_000, 2_000
# Milliseconds. The broker keeps no time before 1970.
FIRST = 1_000_000
NOTHING = dict.fromkeys(LIVE_COLUMNS)


def keyed(name, *streams):
    return Keyed(
        name=name,
        columns={"id": "STRING"},
        key=("id",),
        allowed_lateness=timedelta(milliseconds=LIMIT),
        inputs=tuple(Input(stream, "user_id", ("page",)) for stream in streams),
        process=lambda seen, event: (seen, [{"id": event.id}]),
    )


VIEWS = {"both": keyed("both", "page_views", "clicks"), "one": keyed("one", "clicks")}
STREAMS = {"page_views": EventStream([0, 1], BOUND), "clicks": EventStream([0], BOUND)}
# Stream, partition, key, Kafka timestamp, lateness by it.
RECORD = st.tuples(
    st.sampled_from([("page_views", 0), ("page_views", 1), ("clicks", 0)]),
    st.sampled_from("ab"),
    st.integers(FIRST, FIRST + 30_000),
    st.integers(0, 2 * LIMIT),
)


def rows_of(number, record):
    """What the query's SQL gives to the operator: it leaves out what is late by its own timestamp."""
    (stream, partition), key, timestamp, late_by = record
    place = {"_stream": stream, "_partition": partition, "_offset": number, "_timestamp": timestamp}
    time = (timestamp - late_by) * 1000
    event = {"_key": key, "_time": time, "_id": f"{number:03}", "_data": "{}"}
    views = [name for name, view in VIEWS.items() if stream in view.streams and late_by <= LIMIT]
    return [row | place for row in [*({**NOTHING, **event, "_view": name} for name in views), NOTHING]]


def run(records, cuts=()):
    """By view, the ids and times of its rows; the records are divided among micro-batches, and heartbeats end them."""
    machines, found, batch = Machines(VIEWS, STREAMS), defaultdict(list), []
    machines.init(StateStore())
    end = FIRST + 100_000
    heartbeats = [dict.fromkeys(LIVE_COLUMNS) | {"_stream": s, "_partition": p, "_offset": 999, "_timestamp": end}
                  for s, of in STREAMS.items() for p in of.partitions]  # fmt: skip
    for number, record in enumerate([*records, None]):
        batch += heartbeats if record is None else rows_of(number, record)
        if batch and (record is None or number in cuts):
            # Spark brings rows in any order.
            for row in machines.handleInputRows(None, as_rows(reversed(batch)), None):
                if row["_view"] is not None:
                    found[row["_view"]].append(states.loads(row["_row"]))
            batch = []
    return found


def counted(view, records):
    """By the rule alone: the ids of the events that count."""
    newest, ids = {}, set()
    for number, (place, _, timestamp, late_by) in enumerate(records):
        newest[place] = max(timestamp, newest.get(place, 0))
        arrival = max(timestamp, newest[place] - BOUND)
        if place[0] in view.streams and arrival - (timestamp - late_by) <= LIMIT:
            ids.add(f"{number:03}")
    return ids


@given(st.lists(RECORD, max_size=20), st.sets(st.integers(0, 20)))
def test_each_event_that_counts_gives_its_row_however_the_log_is_cut(records, cuts):
    found = run(records, cuts)
    for name, view in VIEWS.items():
        assert sorted(row["id"] for row in found[name]) == sorted(counted(view, records))


@given(st.lists(RECORD, max_size=20), st.sets(st.integers(0, 20)))
def test_a_machine_gets_its_events_in_the_order_of_their_times(records, cuts):
    for name, rows in run(records, cuts).items():
        for key in "ab":
            own = [row["at"] for row in rows if records[int(row["id"])][1] == key]
            assert own == sorted(own), name


def test_a_quiet_topic_holds_up_only_the_views_that_read_it():
    machines = Machines(VIEWS, STREAMS)
    machines.init(StateStore())
    clicks = [rows_of(0, (("clicks", 0), "a", FIRST, 0)), rows_of(1, (("clicks", 0), "a", FIRST + 60_000, 0))]
    rows = machines.handleInputRows(None, as_rows([*clicks[0], *clicks[1]]), None)
    assert [row["_view"] for row in rows] == ["one", None]


def test_an_event_of_an_added_partition_from_before_what_is_final_is_late():
    machines = Machines(VIEWS, STREAMS)
    machines.init(StateStore())
    ids = []
    clicks = [(("clicks", 0), "a", FIRST + 60_000, 0), (("clicks", 1), "a", FIRST, 0)]
    clicks += [((stream, n), "a", FIRST + 100_000, 0) for stream in ("clicks", "page_views") for n in (0, 1)]
    for number, record in enumerate(clicks):
        rows = machines.handleInputRows(None, as_rows(rows_of(number, record)), None)
        ids += [states.loads(row["_row"])["id"] for row in rows if row["_view"] == "one"]
    assert ids == ["000"]


def test_a_micro_batch_that_runs_again_gives_the_same_rows_though_a_partition_was_added():
    """The sink leaves out what was written before, so rows that are held back would come a second time."""

    def rows_of_second_batch(partitions):
        batches = [rows_of(n, (("clicks", 0), "a", FIRST + n * 60_000, 0)) for n in range(2)]
        of_one = [[row for row in batch if row["_view"] in ("one", None)] for batch in batches]
        views = {"one": VIEWS["one"]}
        killed, restarted = (Machines(views, {"clicks": EventStream(p, BOUND)}) for p in ([0], partitions))
        killed.init(StateStore())
        killed.handleInputRows(None, as_rows(of_one[0]), None)
        for variable in ("machines", "buckets", "waiting", "watermarks"):
            setattr(restarted, variable, getattr(killed, variable))
        return [row["_row"] for row in restarted.handleInputRows(None, as_rows(of_one[1]), None)]

    assert rows_of_second_batch([0, 1]) == rows_of_second_batch([0])
    assert len(rows_of_second_batch([0])) == 2
