"""A stream's contract: its topic, key, schema, time, identity and personal columns. Data only."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Literal

from lockstep.contracts.rules import Rule
from lockstep.formats import Codec, Format, SchemaInvalid, codec, fits
from lockstep.formats.confluent import framed
from lockstep.project import SCHEMA_FILES

# The header of a record that is no data: it says that its partition has passed its timestamp.
HEARTBEAT = "lockstep-heartbeat"
# The header of a record whose key and value were erased.
ERASED = "lockstep-erased"
# The header of a record that Lockstep has produced again, after newer ones, because the log had lost the place where it was.
PRODUCED_AGAIN = "lockstep-produced-again"
Kind = Literal["events", "changes"]


@dataclass(frozen=True)
class Contract:
    """One stream, from its topic to its silver table.

    Args:
        name: the table's name in every layer (``bronze.<name>``, ``silver.<name>``).
        topic: the Kafka topic.
        kind: ``events`` (immutable facts) or ``changes`` (of the rows of one table: Debezium envelopes of one in PostgreSQL, or
            the same of a view's results).
        columns: the payload's columns, in order, and their Spark types. For ``changes``, those of the source table's row.
        database: for ``changes``, the source database, with whose name the topic begins. Empty: the one that has the name of
            the project's package; the setting ``databases`` has others.
        view: for ``changes``, the view whose final rows they are: the platform writes each change of them to the topic, so that
            other views can read them. Empty: the rows are those of a source table.
        key: the columns that make the record's key.
        unique_id: the columns that identify one event, or one row of the source table.
        event_time: the column with the time of the event (UTC). Changes are ordered by the time of their commit: for them
            this is the row's own time, or empty if it has none.
        required: columns without which a row goes to quarantine.
        pii: columns that are tokens from silver on.
        subject: the column that says which person a row is about, such as ``user_id``: `lockstep erase` finds a person's rows by
            it, and the tokens of a row are made with the key of its person. Empty: rows are about nobody.
        dedup_window: how long after an event another one with its unique id is a duplicate, in arrival time.
        max_clock_skew: how much later than the arrival the event time may be; else the row is quarantined.
        max_out_of_orderness: how much earlier than the newest of its partition a record's Kafka timestamp may be, when several
            producers write to it. It counts against the lateness that views allow: what comes further behind is later by the
            rest. Rows of keyed views wait for so long.
        partitions: the number of partitions with which the topic is created.
        rules: expectations that put rows aside. They are not written here: the suite of the silver table has them, and
            :data:`~lockstep.contracts.CONTRACTS` adds them.
        max_lag: `lockstep status` names the stream as a problem when bronze or silver has not read a record that is older
            than this; None: the setting ``max_lag_seconds``.
        format: how values are written: ``json``, ``avro`` or ``protobuf``. Changes are Debezium's JSON.
        schema: of Avro or Protobuf, the schema: the name of a file beside the contract, such as
            ``<name>.avsc``, or its text.
        message: of Protobuf, the full name of the message that a value is; empty: the first one of the file.
        wire_format: ``plain``, or ``confluent``: each value begins with a zero byte and the id of its writer's schema in a
            registry. The bytes of Avro alone do not tell which of both they are.
        valid_from: for ``changes``, the column with the time (UTC) from which a version of a row is valid, such as
            ``updated_at``: ``silver.<name>_history`` goes by it. Empty: a version is valid from its commit on.
        description: what one row says, in plain sentences.
        column_descriptions: what columns mean, by name: unit, time zone, when it is null. `lockstep describe`, the comments of
            the tables, dbt's sources and the data docs show them, and views take them over for columns of the same name.
    """

    name: str
    topic: str
    kind: Kind
    columns: Mapping[str, str]
    key: tuple[str, ...]
    unique_id: tuple[str, ...]
    event_time: str
    required: tuple[str, ...] = ()
    pii: tuple[str, ...] = ()
    dedup_window: timedelta = timedelta(days=1)
    max_clock_skew: timedelta = timedelta(minutes=5)
    max_out_of_orderness: timedelta = timedelta(seconds=2)
    partitions: int = 3
    rules: tuple[Rule, ...] = ()
    format: Format = "json"
    schema: str = ""
    message: str = ""
    wire_format: Literal["plain", "confluent"] = "plain"
    # Not in the repr, which is part of the version of each view: no row depends on these, but tokens on the subject.
    max_lag: timedelta | None = field(default=None, repr=False)
    valid_from: str = field(default="", repr=False)
    database: str = field(default="", repr=False)
    view: str = field(default="", repr=False)
    subject: str = field(default="", repr=False)
    description: str = field(default="", repr=False)
    column_descriptions: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def problems(self) -> list[str]:
        """Every reason why the contract contradicts itself, each with its fix; empty for a sound one."""
        found = [not_a_column(name, self.columns) for name in self.column_descriptions if name not in self.columns]
        if self.valid_from and (self.kind != "changes" or self.columns.get(self.valid_from) != "TIMESTAMP"):
            found.append(
                f"valid_from is {self.valid_from}, which is no column of type TIMESTAMP of a stream of changes: correct it, or "
                "leave it out"
            )
        if self.database and (self.kind != "changes" or not self.topic.startswith(f"{self.database}.")):
            found.append(
                f"its database is {self.database}, and its topic {self.topic}: changes of a table are in the topic "
                f"{self.database}.<schema>.<table>, and events have no database"
            )
        if self.subject and self.columns.get(self.subject) != "STRING":
            found.append(f"subject is {self.subject}, which is no column of type STRING: correct it, or leave it out")
        return found + self._problems_of_results() + self._problems_of_format()

    def _problems_of_results(self) -> list[str]:
        if not self.view:
            return []
        found = []
        if self.kind != "changes":
            found.append(f"it has the results of the view {self.view}, which a replay may change: set kind to changes")
        if self.key != self.unique_id:
            found.append("all changes of a result must be in one partition: set key to what unique_id is")
        if self.database:
            found.append(
                f"it has the results of the view {self.view}, and no table of {self.database}: leave database out"
            )
        if self.pii:
            found.append(
                f"what is personal in a view's results are tokens already ({', '.join(self.pii)}): leave pii out"
            )
        return found

    def _problems_of_format(self) -> list[str]:
        if self.format == "json":
            needless = [name for name in ("schema", "message") if getattr(self, name)]
            if self.kind == "changes" and self.wire_format != "plain":
                return ["its wire_format is confluent, and changes are read as Debezium's JSON alone: leave it out"]
            return [f"it has a {name}, which JSON does not need: set format, or leave it out" for name in needless]
        if self.kind == "changes":
            return [f"its format is {self.format}, and changes are read as Debezium's JSON: leave the format out"]
        if not self.schema:
            file = f"{self.name}.{'avsc' if self.format == 'avro' else 'proto'}"
            return [
                f"its format is {self.format}, and it has no schema: name a file beside the contract, such as {file}"
            ]
        if self.schema_file:
            return []  # The file is read, and checked, when the project is loaded.
        try:
            kinds = self.codec.kinds()
        except SchemaInvalid as error:
            return [str(error)]
        gone = [
            f"its schema has no field {name}: add it there, or leave the column out"
            for name in self.columns
            if name not in kinds
        ]
        wrong = [
            f"the column {name} is {column}, and the values of its schema's field are {kinds[name].name.lower()}: "
            f"declare {' or '.join((*kinds[name].value, 'STRING'))}"
            for name, column in self.columns.items()
            if name in kinds and not fits(kinds[name], column)
        ]
        return gone + wrong

    def encoded(self, fields: Mapping[str, Any], schema_id: int = 0) -> bytes:
        """The value of a record with these fields, as producers write it. Times and decimals may be as JSON has them.

        Args:
            schema_id: of the schema in a registry, in Confluent's wire format.

        Raises:
            ValueError, TypeError: the schema does not allow these values.
        """
        if self.format == "json":
            text = json.dumps(dict(fields)).encode()
            return text if self.wire_format == "plain" else framed(schema_id, text)
        value = self.codec.encode(fields)
        return value if self.wire_format == "plain" else framed(schema_id, self.codec.framed_prefix() + value)

    @property
    def is_captured(self) -> bool:
        """Whether it has the changes of a table of a source database, which Debezium captures."""
        return self.kind == "changes" and not self.view

    @property
    def by_registry(self) -> bool:
        """Whether its records are read by the schemas of a registry, where there is one. JSON can be read without."""
        return self.wire_format == "confluent" and self.format != "json"

    @property
    def codec(self) -> Codec:
        """What reads and writes values of its schema.

        Raises:
            SchemaInvalid: it is none of the format.
        """
        return codec(self.format, self.schema, self.message)

    @property
    def schema_file(self) -> str:
        """The name of the file that has the schema; empty: there is none, or its text is here."""
        return self.schema if self.schema.endswith(SCHEMA_FILES) else ""


def not_a_column(name: str, columns: Iterable[str]) -> str:
    """That a description is of no column, and what to do."""
    return f"it describes {name}, which is not one of its columns ({', '.join(columns)}): correct the name, or leave it out"
