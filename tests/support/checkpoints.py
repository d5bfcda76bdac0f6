"""Build Spark checkpoints for tests.

The fixture ``root`` is a checkpoint as Spark leaves it: four batches, one stateful operator in two partitions, and a snapshot in
one of them.
"""

import binascii
import io
import json
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

BATCHES = 4
SST = b"sorted strings" * 100


def hadoop_checksum(content: bytes) -> bytes:
    """Hadoop's checksum of a file: a header, and a CRC32 of each 512 bytes."""
    sums = [binascii.crc32(content[start : start + 512]) for start in range(0, len(content), 512)]
    return b"crc\0" + struct.pack(f">I{len(sums)}I", 512, *sums)


def write(root: Path, path: str, content: bytes, checksum: bool = True) -> None:
    """Write a file of a checkpoint, as Hadoop's local file system does."""
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    if checksum:
        (file.parent / f".{file.name}.crc").write_bytes(hadoop_checksum(content))


def write_batch(root: Path, number: int, offsets: Mapping[str, Mapping[str, int]], watermark: int = 0) -> None:
    """Write the log entries of a finished batch.

    Args:
        offsets: per topic and partition, the next offset after the batch.
        watermark: milliseconds since the epoch (UTC).
    """
    metadata = {"batchWatermarkMs": watermark, "batchTimestampMs": 1795249950543, "conf": {}}
    write(root, f"offsets/{number}", f"v1\n{json.dumps(metadata)}\n{json.dumps(offsets)}".encode())
    write(root, f"commits/{number}", f'v1\n{{"nextBatchWatermarkMs":{watermark + 1000}}}'.encode())


def snapshot() -> bytes:
    """A snapshot of RocksDB: a zip with metadata that lists one file."""
    metadata = {
        "sstFiles": [{"localFileName": "9.sst", "dfsSstFileName": "9-a.sst", "sizeBytes": len(SST)}],
        "numKeys": 3,
    }
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("metadata", "v1\n" + json.dumps(metadata))
        archive.writestr("MANIFEST-000005", b"manifest" * 50)
    return buffer.getvalue()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkpoint of four batches."""
    location = tmp_path / "per_minute" / "1"
    write(location, "metadata", b'{"id":"5e4e86f2-eeb9-4ee5-87e8-fbdec80f578c"}')
    write(location, "sources/0/0", b'\0v1\n{"page_views":{"0":0,"1":0}}')
    for n in range(BATCHES):
        write_batch(location, n, {"page_views": {"0": 10 * (n + 1), "1": 7 * (n + 1)}}, watermark=n * 1000)
        for partition in (0, 1):
            content = f"changes of {n} in {partition}".encode() * 100
            write(location, f"state/0/{partition}/{n + 1}.changelog", content)
            checksum = {"algorithm": "CRC32C", "value": 1, "mainFileSize": len(content)}
            write(location, f"state/0/{partition}/{n + 1}.changelog.crc", json.dumps(checksum).encode())
    operator = {
        "operatorInfo": {"operatorId": 0, "operatorName": "stateStoreSave"},
        "stateStoreInfo": [{"storeName": "default", "numColsPrefixKey": 0, "numPartitions": 2}],
    }
    write(location, "state/0/_metadata/metadata", f"v1\n{json.dumps(operator)}".encode())
    write(location, "state/0/0/_metadata/schema", b"the schema")
    write(location, "state/0/1/2.zip", snapshot())
    write(location, "state/0/1/SSTs/9-a.sst", SST)
    (location / "state/0/1/1.changelog").unlink()
    return location
