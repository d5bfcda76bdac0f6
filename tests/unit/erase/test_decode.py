"""Files are read as their readers do: what is packed, nested or shared between keys is seen."""

import gzip
import io
import struct
import zipfile
from datetime import UTC, datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from lockstep.erase.decode import contents
from lockstep.erase.needles import Needles

ANN = b"ann4711"


def has(data, name=""):
    return any(ANN in part for part in contents(data, name))


def packed_parquet(table):
    out = io.BytesIO()
    pq.write_table(table, out, compression="zstd", write_statistics=False)
    return out.getvalue()


@pytest.mark.parametrize(
    "values",
    [
        pa.array(["of ann4711", None]),
        pa.array([b"of ann4711", None]),
        pa.array([[{"key": "of", "value": b"is ann4711"}], None]),
        pa.array([[("a", "ann4711")], []], pa.map_(pa.string(), pa.string())),
        pa.array([[("ann4711", "a")], []], pa.map_(pa.string(), pa.string())),
    ],
    ids=["text", "bytes", "struct in a list", "value of a map", "key of a map"],
)
def test_parquet_is_read_by_its_columns(values):
    rows = pa.table({"at": [datetime(2026, 1, 1, tzinfo=UTC), None], "column": values})
    assert has(packed_parquet(rows), "x.parquet")
    assert not has(packed_parquet(rows.slice(1)), "x.parquet")


def test_numbers_are_looked_for_as_text():
    assert b"491701234567" in [*contents(packed_parquet(pa.table({"phone": [491701234567]})), "x.parquet")]


def test_what_is_packed_is_unpacked_also_twice():
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("state.json", gzip.compress(ANN * 50))
    assert has(inner.getvalue())
    assert has(pa.compress(ANN * 50, "zstd", asbytes=True))


def test_blocks_of_lz4_as_spark_writes_its_changelogs():
    body = pa.compress(ANN * 50, "lz4_raw", asbytes=True)
    block = struct.pack("<8sBiii", b"LZ4Block", 0x20, len(body), len(ANN) * 50, 0) + body
    stored = struct.pack("<8sBiii", b"LZ4Block", 0x10, len(ANN), len(ANN), 0) + ANN
    end = struct.pack("<8sBiii", b"LZ4Block", 0x10, 0, 0, 0)
    assert has(block + end)
    assert has(stored + end)


def test_a_longer_word_that_a_packer_has_cut_is_not_the_person():
    """ann47112, of which the packer writes the 2 as one that it had before: packed, ann4711 ends there."""
    text = b"2222222222222222, ann4711222222222222 and more"
    body = pa.compress(text, "lz4_raw", asbytes=True)
    assert Needles({"subject": "ann4711"}).within(body), "the packed bytes have her as a word"
    changelog = struct.pack("<8sBiii", b"LZ4Block", 0x20, len(body), len(text), 0) + body
    table = pa.table({"user_id": [text] * 2})
    out = io.BytesIO()
    pq.write_table(table, out, compression="snappy", write_statistics=False)
    for data in (changelog, pa.compress(text, "zstd", asbytes=True), out.getvalue()):
        assert not Needles({"subject": "ann4711"}).within_any(contents(data))


def test_what_a_parquet_file_says_of_itself_is_looked_at():
    assert has(packed_parquet(pa.table({"a": [1]}).replace_schema_metadata({"note": "of ann4711"})))


def test_what_follows_a_block_of_lz4_and_is_none_cannot_be_decoded():
    with pytest.raises(ValueError, match="no block of LZ4 begins at byte 28"):
        list(contents(struct.pack("<8sBiii", b"LZ4Block", 0x10, len(ANN), len(ANN), 0) + ANN + bytes(21)))


def block_of(*entries):
    return b"".join(entries) + struct.pack("<II", 0, 1)


def test_a_key_of_rocksdb_is_seen_as_a_whole_although_a_block_has_its_end_alone():
    data = block_of(b"\x00\x04\x01" + b"ann1" + b"x", b"\x03\x04\x01" + ANN[3:] + b"y")
    raw = bytes([len(data)]) + b""
    file = data + b"\x00" + bytes(4)
    index = block_of(b"\x00\x04" + b"ann9" + b"\x00" + raw)
    at = len(file)
    file += index + b"\x00" + bytes(4)
    handles = b"\x00\x00" + bytes([at, len(index)])
    footer = b"\x01" + handles.ljust(40, b"\0") + struct.pack("<IQ", 5, 0x88E241B785F4CFF7)
    file += footer
    assert ANN not in file
    assert has(file)
