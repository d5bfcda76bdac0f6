"""Where each poisoned class ends in Avro and Protobuf: this test says what the table in ``docs/quality.md`` must be."""

from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

from tests.support.formats import avro_schema, in_avro, in_protobuf, page_view, page_views, proto_schema
from tests.support.paths import CHECKOUT
from tests.support.shop import START

from lockstep.formats.confluent import Registered, Writers, framed
from lockstep.refine.parse import parse

DOCS = CHECKOUT / "docs" / "quality.md"
HEADER = ("a record in Confluent's wire format", "in Avro", "in Protobuf")
BRONZE = (
    "topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP, key BINARY, value BINARY, "
    "headers ARRAY<STRUCT<key: STRING, value: BINARY>>"
)
LIKE = page_views("page_views")
# The same columns, of which one has values of another type, and one has larger numbers.
OTHER = LIKE.columns | {"count": "STRING"}
KNOWN, WRONG, UNKNOWN, STRANGE = 1, 2, 99, 3
OF_ANOTHER_FORMAT = Registered("JSON", "{}")


class InAvro:
    schema = avro_schema(LIKE.columns)
    other = avro_schema(OTHER)
    contract = replace(LIKE, format="avro", schema=schema, wire_format="confluent")
    prefix = b""

    def write(self, schema, **fields):
        return in_avro(schema, page_view(1, **fields))


class InProtobuf:
    schema = proto_schema(LIKE.columns)
    other = proto_schema(OTHER)
    contract = replace(LIKE, format="protobuf", schema=schema, message="shop.PageView", wire_format="confluent")
    # The second message of the file.
    prefix = b"\x02\x02"

    def write(self, schema, **fields):
        return self.prefix + in_protobuf(schema, page_view(1, **fields))


def poison(form):
    """By class, the value of its record."""
    whole = form.write(form.schema)
    value = framed(KNOWN, whole)
    return {
        "sound": value,
        "cut short": value[:-1],
        "of four bytes": value[:4],
        "with more bytes than its value": value + b"x",
        "no magic byte": b"\x07" + value[1:],
        "an id that the registry does not know": framed(UNKNOWN, whole),
        "an id of a schema in another format": framed(STRANGE, whole),
        "a schema in which a column has another type": framed(WRONG, form.write(form.other, count="many")),
        "another message of the file": framed(KNOWN, b"\0" + whole[len(form.prefix) :]) if form.prefix else None,
        "bad UTF-8": value.replace(b"e1", b"\xff\xfe"),
        "no value of a required column": framed(KNOWN, form.write(form.schema, page=None)),
        "NaN": framed(KNOWN, form.write(form.schema, share=float("nan"))),
        "11 digits before the point in a DECIMAL(12,2)": framed(
            KNOWN, form.write(form.schema, amount=Decimal("9" * 11))
        ),
        "a date of 1970": framed(KNOWN, form.write(form.schema, event_time=datetime(1970, 1, 1, tzinfo=UTC))),
        "a date of 2099": framed(KNOWN, form.write(form.schema, event_time=datetime(2099, 1, 1, tzinfo=UTC))),
        "SQL in a string": framed(KNOWN, form.write(form.schema, page="'; DROP TABLE silver.page_views; --")),
    }


def outcomes(spark, form):
    """What becomes of each class."""
    kind = form.contract.format.upper()
    known = {KNOWN: Registered(kind, form.schema), WRONG: Registered(kind, form.other)}
    writers = Writers(known | {UNKNOWN: None, STRANGE: OF_ANOTHER_FORMAT})
    values = {name: value for name, value in poison(form).items() if value is not None}
    rows = [("t", 0, offset, START, None, value, None) for offset, value in enumerate(values.values())]
    parsed = parse(spark.createDataFrame(rows, BRONZE), form.contract, writers)
    reasons = {row["_offset"]: row["_reason"] for row in parsed.select("_offset", "_reason").collect()}
    assert len(reasons) == len(values)
    found = (f"quarantine: `{reasons[offset]}`" if reasons[offset] else "a row" for offset in range(len(values)))
    return dict(zip(values, found, strict=True))


def test_where_each_poisoned_class_ends_is_what_the_docs_say(spark):
    avro, protobuf = (outcomes(spark, form) for form in (InAvro(), InProtobuf()))
    table = [(name, avro.get(name, "—"), protobuf[name]) for name in protobuf]
    lines = ["| " + " | ".join(cells) + " |" for cells in (HEADER, ["---"] * len(HEADER), *table)]
    text = "\n".join(lines)
    assert text in DOCS.read_text(), f"docs/quality.md must have this table:\n{text}"
