"""Bytes of files as their readers see them: unpacked, and columns and blocks one by one. Pure but for Parquet's files."""

import gzip
import io
import struct
import zipfile
import zlib
from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

# How Spark's streams of LZ4 blocks begin (net.jpountz.lz4.LZ4BlockOutputStream): its changelogs of state, among others.
_LZ4_BLOCK = b"LZ4Block"
_LZ4_HEADER = struct.Struct("<8sBiii")
_LZ4_RAW = 0x10
_ZSTD = b"\x28\xb5\x2f\xfd"
# The last bytes of a file of RocksDB with blocks: version, and the magic number of its format.
_SST_MAGIC = struct.pack("<Q", 0x88E241B785F4CFF7)
_SST_FOOTER = 53
_CODECS = {1: "snappy", 4: "lz4_raw", 5: "lz4_raw", 7: "zstd"}


def contents(data: bytes, name: str = "") -> Iterator[bytes]:
    """All that a reader of the bytes sees: unpacked, or the bytes themselves.

    Packed bytes are not a part of it: of ann47112, a packer may write ann4711 and then say where it had a 2 before.

    Args:
        name: of the file; a name that ends with ``.parquet`` is read as Parquet, whatever is in it.

    Raises:
        OSError, ValueError, IndexError, KeyError: it cannot be unpacked.
    """
    if name.endswith(".parquet") or data[:4] == b"PAR1":
        yield from _parquet(data)
    elif data[:2] == b"\x1f\x8b":
        yield from contents(gzip.decompress(data))
    elif data[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(data)) as packed:
            yield packed.comment
            for member in packed.infolist():
                yield member.filename.encode()
                yield from contents(packed.read(member), member.filename)
    elif data[:8] == _LZ4_BLOCK:
        yield b"".join(_lz4_blocks(data))
    elif data[:4] == _ZSTD:
        with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
            yield stream.read()
    elif data[-8:] == _SST_MAGIC:
        yield from _sst(data)
    else:
        yield data


def _parquet(data: bytes) -> Iterator[bytes]:
    file = pq.ParquetFile(io.BytesIO(data))
    yield data[_end_of_pages(file.metadata) :]
    for batch in file.iter_batches(batch_size=10_000):
        for column in batch.columns:
            for leaf in _leaves(column):
                yield from leaf


def _end_of_pages(metadata: pq.FileMetaData) -> int:
    """Where a file's statistics, indexes and own texts begin: they are not packed."""
    groups = [metadata.row_group(at) for at in range(metadata.num_row_groups)]
    chunks = [group.column(at) for group in groups for at in range(group.num_columns)]
    # A dictionary comes before the pages that use it, and is counted.
    return max(
        ((of.dictionary_page_offset or of.data_page_offset) + of.total_compressed_size for of in chunks), default=0
    )


def _leaves(column: pa.Array) -> Iterator[list[bytes]]:
    """The values of a column and of what is nested in it, as bytes; of numbers and times, as text."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        yield from _leaves(column.dictionary_decode())
    elif pa.types.is_struct(kind):
        for child in column.flatten():
            yield from _leaves(child)
    elif pa.types.is_map(kind):
        yield from _leaves(column.keys)
        yield from _leaves(column.items)
    elif pa.types.is_list(kind) or pa.types.is_large_list(kind):
        yield from _leaves(column.flatten())
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind):
        yield [value for value in column.to_pylist() if value]
    elif pa.types.is_string(kind) or pa.types.is_large_string(kind):
        yield [value.encode() for value in column.to_pylist() if value]
    elif pa.types.is_integer(kind):
        yield [str(value).encode() for value in column.to_pylist() if value is not None]


def _lz4_blocks(data: bytes) -> Iterator[bytes]:
    codec, at = pa.Codec("lz4_raw"), 0
    while at + _LZ4_HEADER.size <= len(data):
        magic, token, packed, size, _ = _LZ4_HEADER.unpack_from(data, at)
        if magic != _LZ4_BLOCK:
            raise ValueError(f"no block of LZ4 begins at byte {at}")
        at += _LZ4_HEADER.size
        body = data[at : at + packed]
        if size:
            yield codec.decompress(body, size).to_pybytes() if token & 0xF0 != _LZ4_RAW else body
        at += packed


def _sst(data: bytes) -> Iterator[bytes]:
    """Keys and values of the file, each key as a whole: a block has of a key only what differs from the one before.

    And what the file says of itself, which is not packed: its properties, and ranges that were deleted.
    """
    footer = data[-_SST_FOOTER:]
    _, at = _varint(footer, 1)  # the handle of the meta index
    _, at = _varint(footer, at)
    index, at = _varint(footer, at)
    index_size, _ = _varint(footer, at)
    end = 0
    for key, value in _entries(_block(data, index, index_size), is_index=True):
        yield key
        offset, at = _varint(value, 0)
        size, _ = _varint(value, at)
        end = offset + size
        for own, of in _entries(_block(data, offset, size)):
            yield own
            yield of
    yield data[end:index]
    yield data[index + index_size :]


def _block(data: bytes, offset: int, size: int) -> bytes:
    body, kind = data[offset : offset + size], data[offset + size]
    if kind == 0:
        return body
    if kind == 2:
        _, at = _varint(body, 0)
        return zlib.decompress(body[at:], -15)
    if kind == 1:
        return pa.Codec("snappy").decompress(body, _varint(body, 0)[0]).to_pybytes()  # type: ignore[no-any-return]
    length, at = _varint(body, 0)
    return pa.Codec(_CODECS[kind]).decompress(body[at:], length).to_pybytes()  # type: ignore[no-any-return]


def _entries(block: bytes, is_index: bool = False) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a block. In an index, each entry is a restart: it has its whole key, and no length of its value."""
    restarts = struct.unpack("<I", block[-4:])[0] & 0x7FFFFFFF
    end, at, key = len(block) - 4 - 4 * restarts, 0, b""
    while at < end:
        shared, at = _varint(block, at)
        own, at = _varint(block, at)
        length = 0
        if not is_index:
            length, at = _varint(block, at)
        key = key[:shared] + block[at : at + own]
        at += own
        if is_index:
            _, after = _varint(block, at)
            _, after = _varint(block, after)
            length = after - at
        yield key, block[at : at + length]
        at += length


def _varint(data: bytes, at: int) -> tuple[int, int]:
    found = shift = 0
    while True:
        byte = data[at]
        found |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return found, at
