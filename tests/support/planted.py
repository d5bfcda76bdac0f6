"""Copies of a person's data, planted in each kind of place where the platform keeps data."""

import base64
import io
import json
import struct
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import psycopg2
import pyarrow as pa
import pyarrow.parquet as pq
from tests.support.shop import START, Shop

from lockstep import lake
from lockstep.control.records import Record, put
from lockstep.definition import View
from lockstep.settings import Settings

# Of Airflow's database, of which a stack without Airflow has no tables.
AIRFLOW_TABLES = ("planted_text", "planted_bytes")


@contextmanager
def planted(settings: Settings, shop: Shop, view: View, person: str) -> Iterator[set[str]]:
    """Plant a copy in each kind of place, and remove it in the end, but for the two records in the topic.

    Yields:
        Where the scanner must find it.
    """
    files = _files(settings, shop.contract.name, view, person)
    root, home = Path(settings.lake), settings.home
    try:
        for file, data in files.items():
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)
        put(settings, "ops.planted", [Record("scan", 1, {"sample": {"user_id": person}}, START)])
        _execute(
            settings.dsn("airflow"),
            ("CREATE TABLE planted_text (value jsonb, pickled bytea)",),
            ("INSERT INTO planted_text VALUES (%s, NULL)", json.dumps([person])),
            ("CREATE TABLE planted_bytes (conf bytea)",),
            ("INSERT INTO planted_bytes VALUES (%s)", psycopg2.Binary(_zipped(person))),
        )
        shop.raw(b"{}", 2, key=person, partition=0)
        shop.raw(b"{}", 3, key="k", headers=[("of", person.encode())], partition=1)
        shop.flush()
        topic = shop.contract.topic
        of_files = {str(f.relative_to(root if root in f.parents else home)) for f in files}
        yield {*of_files, "ops_records", *AIRFLOW_TABLES, f"{topic}-0", f"{topic}-1"}
    finally:
        for file in files:
            file.unlink(missing_ok=True)
        _execute(settings.dsn(settings.control_database), ("DELETE FROM ops_records WHERE table_name = 'ops.planted'",))
        _execute(settings.dsn("airflow"), (f"DROP TABLE IF EXISTS {', '.join(AIRFLOW_TABLES)}",))


def _files(settings: Settings, stream: str, view: View, person: str) -> dict[Path, bytes]:
    root, home = Path(settings.lake), settings.home
    table = Path(lake.path(settings, f"silver.{stream}"))
    state = root / "_checkpoints" / view.name / "7" / "state" / "0" / "0"
    return {
        table / "part-of-an-old-version.parquet": _parquet(person),
        table / "_change_data" / "cdc-of-an-old-version.parquet": _parquet(person),
        table / "_delta_log" / f"{90:020d}.json": json.dumps({"add": {"stats": person}}).encode(),
        table / "_delta_log" / f"{90:020d}.checkpoint.parquet": _parquet(person),
        state / "3.changelog": _lz4(person),
        state / "3.zip": _zipped(person),
        home / "airflow" / "logs" / "run.log": f"read {person}".encode(),
        home / "data_docs" / "tables" / "page.html": f"<td>{person}</td>".encode(),
        home / "logs" / "planted.log": base64.b64encode(f"a plan with {person} in it".encode()),
    }


def _execute(dsn: str, *statements: tuple[Any, ...]) -> None:
    with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
        for statement, *values in statements:
            cursor.execute(statement, values)


def _parquet(value: str) -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({"add": [{"stats": json.dumps({"minValues": {"user_id": value}})}]}), out)
    return out.getvalue()


def _packable(value: str) -> bytes:
    """The value as a word, after its beginning: packers refer back to that, so that their bytes do not have it as a whole."""
    return f"{value[:8]} {value} ".encode() * 20


def _lz4(value: str) -> bytes:
    data = _packable(value)
    body = pa.compress(data, "lz4_raw", asbytes=True)
    return struct.pack("<8sBiii", b"LZ4Block", 0x20, len(body), len(data), 0) + body


def _zipped(value: str) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("000004.log", _packable(value))
    return out.getvalue()
