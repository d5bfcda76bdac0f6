"""What the stream of a view's results has still to be told: pure, :mod:`.publish_results` reads and sends it.

The topic is held against gold: silver says which rows it has, gold which rows it should have, and only what differs is sent. So
what was sent before a kill is not sent again, and a replay, its undo, a backfill or an erasure needs no rule of its own.
"""

import heapq
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from lockstep import ledger
from lockstep.definition.view import BEGINNING, MICROSECOND, Interval, Output
from lockstep.serving.changelog import Change
from lockstep.sinks.json_text import json_text

if TYPE_CHECKING:
    from lockstep.definition import View
    from lockstep.lake import Commit

# Who writes the changes, in the place of Debezium's connector.
CONNECTOR = "lockstep-results"
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Published:
    """Up to where the topic has a view's results.

    Args:
        version: of gold.
        at: when this version was committed (milliseconds, UTC): a table that was made again has other times.
        until: the rows that are final before it were compared with this version (ISO 8601, UTC).
        columns: of the rows.
    """

    version: int
    at: int
    until: str
    columns: tuple[str, ...]

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "Published | None":
        """What is recorded; None: nothing is."""
        return cls(**{**record, "columns": tuple(record["columns"])}) if record else None

    @property
    def fields(self) -> dict[str, Any]:
        """What is recorded of it."""
        return asdict(self) | {"columns": [*self.columns]}

    @property
    def final_until(self) -> datetime:
        """The instant (UTC) before which the rows are final, and were compared."""
        return datetime.fromisoformat(self.until)

    def has(self, entry: ledger.Entry) -> bool:
        """Whether the topic has what is final in an entry of gold."""
        if (entry.committed_at, entry.version) == (self.at, self.version):
            return (entry.until or BEGINNING) <= self.final_until
        return (entry.committed_at, entry.version) < (self.at, self.version)


def published(entry: ledger.Entry, columns: Iterable[str]) -> Published:
    """What is published with an entry of gold."""
    until = entry.until or BEGINNING
    return Published(entry.version, entry.committed_at, until.isoformat(), tuple(columns))


def written_since(before: Published | None, now: Published, commits: "Iterable[Commit]") -> list[Interval] | None:
    """The intervals that gold's writers have replaced since it was published last; None: not known, so that all is compared.

    Args:
        commits: of gold, the newest first.
    """
    if before is None or before.columns != now.columns:
        return None
    found: list[Interval] = []
    for commit in commits:
        if commit.version <= before.version:
            return found if (commit.version, commit.timestamp) == (before.version, before.at) else None
        if commit.version > now.version or ledger.is_housekeeping(commit):
            continue
        if "span" not in commit.record:
            return None
        if span := commit.record["span"]:
            found.append((datetime.fromisoformat(span[0]), datetime.fromisoformat(span[1])))
    return None


def touched(view: "View", before: Published | None, now: Published, written: list[Interval] | None) -> str:
    """The predicate (SQL of DataFusion) for the rows that have to be compared: what became final since, and what was written.

    Args:
        written: see :func:`written_since`.
    """
    if before is None or written is None:
        return "true"
    # No final row is later, and the end of all times is no literal that DataFusion knows.
    until = now.final_until
    spans = [(low, min(high, until)) for low, high in written if low < until]
    became_final = f"NOT ({view.final_before(before.final_until)})"
    return " OR ".join(f"({predicate})" for predicate in (became_final, *(view.interval(*span) for span in spans)))


@dataclass(frozen=True)
class Step:
    """What is compared at once, as predicates (SQL of DataFusion): the rows of gold, and those that the topic has.

    Args:
        published: what is published once the rows were compared and sent.
    """

    published: Published
    wanted: str
    there: str


def step_of(view: "View", compared: str, until: datetime, now: Published) -> Step:
    """The step that compares the rows that are final before an instant; the last one, if all of ``now`` are.

    Args:
        compared: see :func:`touched`.
    """
    wanted = f"({view.final_before(until)}) AND ({compared})"
    if until >= now.final_until:
        # What the topic has after that is no row of gold: its table was made again.
        return Step(now, wanted, compared)
    return Step(replace(now, until=until.isoformat()), wanted, wanted)


def next_until(times: Iterable[datetime], most: int, now: Published) -> datetime:
    """Before which instant the rows of the next step are final: all, or ``most`` of them, and those of the same time as the last.

    Args:
        times: by which the rows that have to be compared are final.
    """
    first = heapq.nsmallest(most + 1, times)
    return now.final_until if len(first) <= most else min(first[most - 1] + MICROSECOND, now.final_until)


def final_column(view: "View") -> str:
    """The column with the time by which a row is final."""
    return "window_end" if view.output is Output.WINDOWS else view.time_column


def next_number(batch_id: int, commits: Mapping[int, tuple[int, int]]) -> int:
    """The place of the next transaction in the order of the changes: after the last one that was sent, and that silver has.

    Args:
        batch_id: of the newest transaction; -1: there is none.
        commits: of silver's newest entry.
    """
    return max(batch_id, 0, *(number for _, number in commits.values())) + 1


def differences(
    wanted: Iterable[Row], there: Iterable[Row], key: tuple[str, ...]
) -> Iterator[tuple[str, Row | None, Row | None]]:
    """What the topic must be told, so that it has the wanted rows: for each key that differs, the row before and after.

    Args:
        there: the rows that it has.
    """
    old = {_key(row, key): row for row in there}
    for row in wanted:
        name = _key(row, key)
        before = old.pop(name, None)
        if before is None or json_text({**before}) != json_text({**row}):
            yield name, before, row
    for name, before in old.items():
        yield name, before, None


def change(name: str, before: Row | None, after: Row | None, number: int, now: Published) -> Change:
    """One change as a record, in the form in which Debezium writes those of a table.

    Args:
        number: of its transaction. It is both LSNs: no transaction has two changes of one key.
    """
    op = "d" if after is None else "c" if before is None else "u"
    place = str(number)
    source = {
        "connector": CONNECTOR,
        "snapshot": "false",
        "lsn": number,
        "sequence": json.dumps([place, place]),
        "ts_ms": now.at,
    }
    value = {"before": before and {**before}, "after": after and {**after}, "op": op, "source": source, "ts_ms": now.at}
    return Change(f"{number}:{name}", name, json_text(value))


def _key(row: Row, key: tuple[str, ...]) -> str:
    return json_text({name: row[name] for name in key})
