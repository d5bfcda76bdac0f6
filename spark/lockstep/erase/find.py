"""Which records are about a person: found in bronze, by decoding each record as the contract says."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from operator import or_
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep import lake, ledger
from lockstep.contracts import Contract
from lockstep.control import subject_keys
from lockstep.control.erased import Offsets, offsets_of
from lockstep.definition.columns import POSITION
from lockstep.definition.tables import Tables
from lockstep.erase.needles import in_bytes
from lockstep.ledger.ranges import ends, where_offsets
from lockstep.refine.parse import GOOD, parse
from lockstep.refine.tokens import keys_of, of_person, token
from lockstep.refine.writers import headers, writers_of

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, Row, SparkSession

    from lockstep.settings import Settings


@dataclass(frozen=True)
class Found:
    """The records of one stream that are to be erased.

    Args:
        offsets: by partition.
        counts: of those that silver has read, by outcome.
        values: what else names the person and nobody else: the values of the stream's personal columns.
        tokens: what silver and the tables after it have in the place of the person's values.
    """

    offsets: Offsets
    counts: Mapping[str, int]
    values: frozenset[str] = field(default=frozenset(), repr=False)
    tokens: frozenset[str] = frozenset()

    @property
    def records(self) -> int:
        """How many records there are."""
        return sum(map(len, self.offsets.values()))


def of_subject(spark: "SparkSession", settings: "Settings", contract: Contract, value: str) -> Found:
    """The records of a stream that are about a person.

    A record that cannot be parsed, or is a tombstone, is about the person if the value is a word in its key or its value.

    Where the newest change of a captured row is the person's, all changes of the row are erased: without the newest, an older one
    would be taken for the row as it is, and nothing that is left could say that it is not.
    """
    raw = lake.read(spark, settings, Tables.of(contract).bronze)
    clear = replace(contract, pii=())
    rows = parse(raw, clear, writers_of(settings, contract, headers(raw, contract))).where("NOT _erased")
    rows = _with_before(rows, contract).withColumn("_is_subject", _is_about(contract, value)).persist()
    try:
        columns = dict.fromkeys((contract.subject, *contract.pii))
        own = rows.where("_is_subject").select("_partition", "_offset", "_marker", *columns).collect()
        values = {row[name] for row in own for name in contract.pii if row[name]}
        shared = _also_of_others(rows, contract.pii, values)
        markers = [(row["_partition"], row["_offset"]) for row in own if row["_marker"]]
        older = _older_changes(rows, contract).collect() if contract.kind == "changes" else []
    finally:
        rows.unpersist()
    offsets = offsets_of((row["_partition"], row["_offset"]) for row in [*own, *older])
    counts = _counts(spark, settings, contract, offsets, markers)
    tokens = _tokens(settings, contract, own, value, shared)
    return Found(offsets, counts, frozenset(values - shared), frozenset(tokens))


def of_offsets(spark: "SparkSession", settings: "Settings", contract: Contract, offsets: Offsets) -> Found:
    """The records at some offsets of a stream, as far as bronze has them.

    What is looked for of them is their text as a whole. That of one for quarantine may be a part of many others.
    """
    raw = lake.read(spark, settings, Tables.of(contract).bronze).where(where_offsets(offsets))
    rows = parse(raw, replace(contract, pii=()), writers_of(settings, contract, headers(raw, contract)))
    own = rows.where("NOT _erased").select("_partition", "_offset", "_marker", "_reason", "_text").collect()
    there = offsets_of((row["_partition"], row["_offset"]) for row in own)
    markers = [(row["_partition"], row["_offset"]) for row in own if row["_marker"]]
    texts = frozenset(row["_text"] for row in own if row["_text"] and not row["_reason"])
    return Found(there, _counts(spark, settings, contract, there, markers), texts)


def _with_before(rows: "DataFrame", contract: Contract) -> "DataFrame":
    if contract.kind == "events":
        return rows.withColumn("_subject_before", F.lit(None).cast("string"))
    before = F.from_json("_text", f"before STRUCT<`{contract.subject}`: STRING>")["before"]
    return rows.withColumn("_subject_before", before[contract.subject])


def _is_about(contract: Contract, value: str) -> "Column":
    asked = F.lit(value)
    key = F.decode("_key", "ISO-8859-1")
    columns = [F.col(contract.subject), F.col("_subject_before")]
    if contract.key == (contract.subject,):
        columns += [
            F.col("_key").cast("string"),
            F.get_json_object(F.col("_key").cast("string"), f"$.{contract.subject}"),
        ]
    opaque = F.col("_marker") | F.col("_reason").isNotNull()
    word = in_bytes(value)
    inside = [opaque & text.rlike(word) for text in (key, F.decode("_value", "ISO-8859-1"))]
    return reduce(or_, (F.coalesce(match, F.lit(False)) for match in [*(c == asked for c in columns), *inside]))


def _older_changes(rows: "DataFrame", contract: Contract) -> "DataFrame":
    """The changes that are about others, of rows of which the newest change is about the person."""
    good = rows.where(GOOD)
    newest = F.max_by("_is_subject", F.struct(*POSITION, "_offset"))
    ended = good.groupBy(*contract.unique_id).agg(newest.alias("_ended")).where("_ended").select(*contract.unique_id)
    return good.where("NOT _is_subject").join(ended, [*contract.unique_id], "left_semi").select("_partition", "_offset")


def _also_of_others(rows: "DataFrame", columns: Sequence[str], values: set[str]) -> set[str]:
    """The values that somebody else has too: they do not tell who it was."""
    found: set[str] = set()
    for name in columns if values else ():
        others = rows.where("NOT _is_subject").where(F.col(name).isin(*values)).select(name).distinct()
        found |= {row[name] for row in others.collect()}
    return found


def _tokens(settings: "Settings", contract: Contract, rows: "Sequence[Row]", person: str, shared: set[str]) -> set[str]:
    """The tokens of what the rows have, if it is the person's alone: her key is hers, so its tokens are, whatever the value."""
    of = {name: contract.subject if name in of_person(contract) else None for name in contract.pii}
    pairs = {(subject and row[subject], row[name]) for row in rows for name, subject in of.items() if row[name]}
    keys = keys_of({subject for subject, _ in pairs}, partial(subject_keys.of, settings))
    # What a row of somebody else has, who was given it, may be in others of his.
    hers = {(subject, value) for subject, value in pairs if subject == person or value not in shared}
    return {token(value, keys[subject]) for subject, value in hers if subject in keys}


def _counts(
    spark: "SparkSession",
    settings: "Settings",
    contract: Contract,
    offsets: Offsets,
    markers: Sequence[tuple[int, int]],
) -> dict[str, int]:
    """What became of the records that silver has read."""
    tables = Tables.of(contract)
    newest = ledger.latest(settings, tables.log)
    end = ends(newest.ranges) if newest else {}
    read = {p: tuple(o for o in of if o < end.get(p, 0)) for p, of in offsets.items()}
    where = where_offsets(read, "_partition", "_offset")
    silver, quarantined = (
        lake.read(spark, settings, table).where(where).count() if lake.exists(settings, table) else 0
        for table in (tables.log, tables.quarantine)
    )
    marked = sum(o < end.get(p, 0) for p, o in markers)
    total = sum(map(len, read.values()))
    duplicates = total - silver - quarantined - marked
    return {"silver": silver, "duplicates": duplicates, "quarantined": quarantined, "markers": marked}
