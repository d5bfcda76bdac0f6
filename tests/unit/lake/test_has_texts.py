"""Whether the comments of a table say what the dictionary says, as its log tells."""

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from lockstep import dictionary, lake

SAID = dictionary.texts("silver.follows")


def make(settings, table, description, columns):
    fields = [pa.field(name, pa.string(), metadata={"comment": text}) for name, text in columns.items()]
    rows = pa.schema(fields).empty_table()
    write_deltalake(lake.path(settings, table), rows, description=description)


def test_a_table_has_the_texts_of_its_contract(settings):
    make(settings, "silver.follows", SAID.description, SAID.columns)
    assert lake.has_texts(settings, "silver.follows")


@pytest.mark.parametrize(
    ("description", "columns"),
    [("Old.", {}), (None, {}), (SAID.description, {"follows": "Old."}), (SAID.description, {"follows": ""})],
    ids=str,
)
def test_a_table_with_other_texts_does_not_have_them(settings, description, columns):
    make(settings, "silver.follows", description, {**SAID.columns, **columns})
    assert not lake.has_texts(settings, "silver.follows")


def test_of_a_table_that_nobody_declares_nothing_is_asked(settings):
    make(settings, "silver.somebodys", "Theirs.", {"id": "Their id."})
    assert lake.has_texts(settings, "silver.somebodys")
