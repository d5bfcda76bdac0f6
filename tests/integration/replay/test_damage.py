"""A data file with a changed byte is refused by name, taken out by signature, and its rows come back by a replay."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from pyspark.errors import PySparkException
from tests.support.digest import digest
from tests.support.slow import slow
from typer.testing import CliRunner

from lockstep import lake
from lockstep.cli.main import app
from lockstep.definition.tables import bronze_of, gold_of, silver_of

LAYERS = ["bronze", "silver", "gold"]


def accept(table, *options):
    signed = ("--by", "an operator", "--reason", "a bad disk")
    return CliRunner().invoke(app, ["ledger", "accept-damage", table, *(options or signed)])


def change_a_byte(settings, table):
    """In a page of the table's only file; the file's name."""
    location = lake.path(settings, table)
    (name,) = [uri.rpartition("/")[2] for uri in DeltaTable(location).file_uris()]
    file = Path(location, name)
    column = pq.ParquetFile(file).metadata.row_group(0).column(0)
    start = column.dictionary_page_offset or column.data_page_offset
    content = bytearray(file.read_bytes())
    content[start + column.total_compressed_size - 1] ^= 1
    file.write_bytes(content)
    # Spark would refuse by Hadoop's checksum, which a lake on an object store does not have.
    file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    return file.name


@pytest.mark.parametrize("layer", [slow("bronze"), "silver", slow("gold")])
def test_a_changed_byte_is_named_and_a_replay_brings_its_rows_back(
    layer, spark, settings, stream, view, shop, batch, asked, redone
):
    for n in range(200):
        shop.view(f"e{n}", 3 * n, user_id=f"u{n}")
    shop.flush()
    batch()
    table = {"bronze": bronze_of(stream), "silver": silver_of(stream), "gold": gold_of(view)}[layer]
    # By Spark, as the files of large commits and partitions are: they have checksums.
    rows = lake.read(spark, settings, table)
    rows.coalesce(1).write.format("delta").mode("overwrite").save(lake.path(settings, table))
    before = digest(settings, table)
    assert "nothing was done" in accept(table).output
    name = change_a_byte(settings, table)
    with pytest.raises(PySparkException, match=name):
        spark.sql(f"SELECT * FROM {table}").collect()

    assert "neither --by nor --reason" in str(accept(table, "--by", "me", "--reason", " ").exception)
    accepted = accept(table)
    assert accepted.exit_code == 0, accepted.output
    assert f"damaged    {name}" in accepted.output
    assert DeltaTable(lake.path(settings, table)).file_uris() == []
    redone(asked(layers=LAYERS[LAYERS.index(layer) :]))
    assert digest(settings, table) == before
