"""The tables of the project's streams and views in every layer, with their columns, types and texts. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition import View
from lockstep.definition.columns import (
    BRONZE,
    FRESHNESS,
    LATE,
    MERGED,
    POSITION,
    QUARANTINE,
    Columns,
    history_columns,
    log_columns,
)
from lockstep.definition.registry import VIEWS
from lockstep.definition.tables import Tables, gold_of, late_of, live_of, serving_of
from lockstep.dictionary import columns as platform
from lockstep.dictionary import ops

Contracts = Mapping[str, Contract]
_LAYERS = ("bronze", "silver", "quarantine", "gold", "live", "late", "serving")
_OFFSET = ("_topic", "_partition", "_offset")


@dataclass(frozen=True)
class Column:
    """One column.

    Args:
        type: its Spark type; empty where only the table itself knows it.
        description: what it means; empty: nobody has said it.
        is_token: whether it is personal, and its values are tokens.
    """

    name: str
    type: str
    description: str = ""
    is_token: bool = False


@dataclass(frozen=True)
class Table:
    """One table, or SQL view.

    Args:
        name: ``layer.name``.
        description: what one row says; empty: nobody has said it.
        key: the columns that identify a row; none: rows have no key.
        time: the column with the time of a row; empty: there is none.
    """

    name: str
    description: str
    columns: tuple[Column, ...]
    key: tuple[str, ...] = ()
    time: str = ""

    @property
    def layer(self) -> str:
        """The layer that it is in."""
        return self.name.partition(".")[0]

    @property
    def texts(self) -> "Texts":
        """What is said about it and its columns."""
        return Texts(self.description, {c.name: c.description for c in self.columns if c.description})


@dataclass(frozen=True)
class Texts:
    """What is said about a table, and about its columns by name. What nobody has said is missing."""

    description: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)


def texts(table: str) -> Texts | None:
    """What is said about ``layer.name``; None: it is no table of the platform or of a stream or view of the project."""
    if table in ops.DESCRIPTIONS:
        return Texts(ops.DESCRIPTIONS[table], ops.COLUMNS[table])
    _, _, name = table.partition(".")
    streams = {name, name.removesuffix("_changes"), name.removesuffix("_history")} & CONTRACTS.keys()
    found = [known for stream in streams for known in of_stream(CONTRACTS[stream])]
    found += [*of_view(VIEWS[name], CONTRACTS)] if name in VIEWS else []
    return next((known.texts for known in [*found, _freshness()] if known.name == table), None)


def of_ops(table: str, columns: Columns) -> Table:
    """A table of the platform's own, of which its writer knows the columns."""
    return _table(table, ops.DESCRIPTIONS[table], columns, ops.COLUMNS[table])


def tables() -> list[Table]:
    """All tables of the project's streams and views, by layer in the order of the flow."""
    found = [table for contract in CONTRACTS.values() for table in of_stream(contract)]
    found += [table for view in VIEWS.values() for table in of_view(view, CONTRACTS)]
    return sorted([*found, _freshness()], key=lambda table: _LAYERS.index(table.layer))


def of_stream(contract: Contract) -> Iterator[Table]:
    """The stream's tables in bronze, silver and quarantine."""
    names, columns = Tables.of(contract), log_columns(contract)
    said = {**platform.ADDED, **contract.column_descriptions}
    tokens = contract.pii
    raw = f"Every record of the topic {contract.topic} as Kafka has it, for replays and audits."
    yield _table(names.bronze, raw, BRONZE, platform.BRONZE, ("partition", "offset"), "timestamp")
    if names.current:
        now = "Each row is as it is now; a deleted one stays, marked by _deleted."
        time = contract.event_time or "_committed_at"
        both = _joined(contract.description, now)
        yield _table(names.current, both, columns, said, contract.unique_id, time, tokens)
        every = f"Every change of the rows of {names.current}: what a row was like at any time."
        yield _table(names.log, every, columns, said, (*contract.unique_id, *POSITION), "_committed_at", tokens)
        if names.history:
            versions = (
                f"Every version of the rows of {names.current}: from when to when it was valid, and was known to be."
            )
            key = (*contract.unique_id, "valid_from", "known_from")
            yield _table(names.history, versions, history_columns(contract), said, key, "valid_from", tokens)
    else:
        yield _table(names.log, contract.description, columns, said, contract.unique_id, contract.event_time, tokens)
    bad = f"Records of the topic {contract.topic} that failed validation, with the reason and their bytes."
    yield _table(names.quarantine, bad, QUARANTINE, platform.ADDED, _OFFSET, "_arrival")


def of_view(view: View, contracts: Contracts) -> Iterator[Table]:
    """The view's tables in gold, live, late and serving; only event streams have late rows.

    Args:
        contracts: the streams that it reads, whose texts its columns of the same name take over.
    """
    read = [contracts[stream] for stream in view.streams if stream in contracts]
    of_streams = {name: text for c in reversed(read) for name, text in c.column_descriptions.items()}
    said = {**of_streams, **platform.ADDED, **view.column_descriptions}
    tokens = tuple(name for contract in read for name in contract.pii)
    key, time, gold = view.key, view.time_column, view.description
    yield _table(gold_of(view), gold, view.output_columns, said, key, time, tokens)
    live = _joined(gold, "As the live query has it, which is newer than gold.")
    yield _table(live_of(view), live, view.live_columns, said, key, time, tokens)
    if events := [contract for contract in read if contract.kind == "events"]:
        late = f"Rows that arrived too late for {gold_of(view)}, from all its event streams."
        columns = {**{n: kind for c in reversed(events) for n, kind in log_columns(c).items()}, **LATE}
        yield _table(late_of(view), late, columns, {**platform.ADDED, **of_streams}, _OFFSET, "_arrival", tokens)
    merged = _joined(gold, "Batch's rows where they are final, and live's rows after that.")
    yield _table(serving_of(view), merged, {**view.output_columns, **MERGED}, said, key, time, tokens)


def _freshness() -> Table:
    return _table("serving.freshness", "How fresh the layers of each view are.", FRESHNESS, platform.FRESHNESS)


def _table(
    name: str,
    description: str,
    columns: Columns,
    said: Mapping[str, str],
    key: tuple[str, ...] = (),
    time: str = "",
    tokens: tuple[str, ...] = (),
) -> Table:
    described = (Column(c, kind, said.get(c, ""), c in tokens) for c, kind in columns.items())
    return Table(name, description, tuple(described), key, time)


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))
