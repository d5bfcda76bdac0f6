"""A copy of a person's data is found in each kind of place where the platform keeps data."""

import base64
import io
import json
import struct
import zipfile
from contextlib import closing
from pathlib import Path

import psycopg2
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.erased import traces
from tests.support.shop import START

from lockstep import lake
from lockstep.control.records import Record, put
from lockstep.erase.needles import Needles
from lockstep.erase.scan import scan, settled


@pytest.fixture
def airflow(settings):
    """Airflow's database, of which the shared stack has no tables."""
    dsn = settings.dsn("airflow")
    yield dsn
    execute(dsn, ("DROP TABLE IF EXISTS planted_text, planted_bytes",))


def execute(dsn, *statements):
    with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
        for statement, *values in statements:
            cursor.execute(statement, values)


def parquet(value):
    out = io.BytesIO()
    pq.write_table(pa.table({"add": [{"stats": json.dumps({"minValues": {"user_id": value}})}]}), out)
    return out.getvalue()


def packable(value):
    """The value as a word, after its beginning: packers refer back to that, so that their bytes do not have it as a whole."""
    return f"{value[:8]} {value} ".encode() * 20


def lz4(value):
    data = packable(value)
    body = pa.compress(data, "lz4_raw", asbytes=True)
    return struct.pack("<8sBiii", b"LZ4Block", 0x20, len(body), len(data), 0) + body


def zipped(value):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("000004.log", packable(value))
    return out.getvalue()


def test_a_planted_copy_is_found_in_each_kind_of_place(spark, settings, stream, view, shop, batch, airflow, person):
    shop.view("e1", 1, user_id="somebody else")
    shop.flush()
    batch()
    needles = Needles({"subject": person})
    assert traces(settled(settings, needles, scan(settings, needles, {})).hits, stream) == [], "nobody has her yet"

    root, home = Path(settings.lake), settings.home
    table = Path(lake.path(settings, f"silver.{stream.name}"))
    state = root / "_checkpoints" / view.name / "7" / "state" / "0" / "0"
    files = {
        table / "part-of-an-old-version.parquet": parquet(person),
        table / "_delta_log" / f"{90:020d}.json": json.dumps({"add": {"stats": person}}).encode(),
        table / "_delta_log" / f"{90:020d}.checkpoint.parquet": parquet(person),
        state / "3.changelog": lz4(person),
        state / "3.zip": zipped(person),
        home / "airflow" / "logs" / "run.log": f"read {person}".encode(),
        home / "data_docs" / "tables" / "page.html": f"<td>{person}</td>".encode(),
        home / "logs" / "planted.log": base64.b64encode(f"a plan with {person} in it".encode()),
    }
    for file, data in files.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    put(settings, "ops.planted", [Record("scan", 1, {"sample": {"user_id": person}}, START)])
    execute(
        airflow,
        ("CREATE TABLE planted_text (value jsonb, pickled bytea)",),
        ("INSERT INTO planted_text VALUES (%s, NULL)", json.dumps([person])),
        ("CREATE TABLE planted_bytes (conf bytea)",),
        ("INSERT INTO planted_bytes VALUES (%s)", psycopg2.Binary(zipped(person))),
    )
    shop.raw(b"{}", 2, key=person, partition=0)
    shop.raw(b"{}", 3, key="k", headers=[("of", person.encode())], partition=1)
    shop.flush()

    try:
        found = settled(settings, needles, scan(settings, needles, {}))
        where = {hit.where for hit in traces(found.hits, stream)}
        of_lake = {str(f.relative_to(root)) for f in files if root in f.parents}
        of_home = {str(f.relative_to(home)) for f in files if root not in f.parents}
        assert where == {
            *of_lake,
            *of_home,
            "ops_records",
            "planted_text",
            "planted_bytes",
            f"{stream.topic}-0",
            f"{stream.topic}-1",
        }
        ends = {p: max(o for of, o in shop.acknowledged if of == p) for p in (0, 1)}
        erased = {stream.topic: {p: (end,) for p, end in ends.items()}}
        kept = scan(settings, needles, erased)
        assert kept.kept == {f"{stream.topic}-{p}": (end, end) for p, end in ends.items()}
        assert not [hit for hit in kept.hits if hit.place == "Kafka"], "what was erased may stay until retention"
    finally:
        for file in files:
            file.unlink()
        execute(settings.dsn(settings.control_database), ("DELETE FROM ops_records WHERE table_name = 'ops.planted'",))
