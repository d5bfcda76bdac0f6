"""A contract whose schema does not have its columns is refused, with the way out."""

import json
from dataclasses import replace

import pytest
from tests.support.formats import avro_schema, page_views

from lockstep.contracts import with_schema
from lockstep.project import ProjectInvalid, folder_of
from lockstep.settings import Settings

JSON = page_views("views")
AVRO = replace(JSON, format="avro", schema=avro_schema(JSON.columns))


def problem(**fields):
    [found] = replace(AVRO, **fields).problems
    return found


def test_a_schema_with_the_columns_is_sound():
    assert AVRO.problems == []
    assert replace(AVRO, columns={**AVRO.columns, "count": "BIGINT", "total": "STRING"}).problems == []


def test_a_column_that_the_schema_lacks_is_named():
    assert "no field city: add it there, or leave the column out" in problem(columns={**AVRO.columns, "city": "STRING"})


def test_a_column_that_cannot_hold_the_values_of_its_field_is_named():
    narrow = problem(columns={**AVRO.columns, "total": "INT"})
    assert "the column total is INT, and the values of its schema's field are long: declare BIGINT or" in narrow
    # A number would be read as seconds, whatever it means.
    schema = avro_schema(JSON.columns | {"event_time": "BIGINT"})
    assert "event_time is TIMESTAMP, and the values of its schema's field are long" in problem(schema=schema)


def test_a_format_without_a_schema_and_a_schema_without_a_format_are_refused():
    assert "it has no schema: name a file beside the contract, such as views.avsc" in problem(schema="")
    assert "it has a schema, which JSON does not need: set format" in problem(format="json")
    assert "it has a message, which JSON does not need" in problem(format="json", schema="", message="a.B")


def test_what_is_no_schema_is_refused():
    assert "it is no Avro schema" in problem(schema="{")


def test_changes_are_in_json():
    assert "Debezium's JSON" in problem(kind="changes", unique_id=("user_id",))
    assert "Debezium's JSON" in problem(kind="changes", format="json", schema="", wire_format="confluent")


@pytest.fixture
def config(tmp_path):
    return Settings(project=tmp_path, package="someones")


@pytest.fixture
def contracts(config):
    found = folder_of(config, "contracts")
    found.mkdir(parents=True)
    return found


def test_the_schema_is_read_from_the_file_beside_the_contract(contracts, config):
    (contracts / "views.avsc").write_text(AVRO.schema)
    named = replace(AVRO, schema="views.avsc")
    assert named.problems == []
    assert with_schema(named, config) == AVRO


def test_a_file_that_is_not_there_or_has_another_schema_is_named(contracts, config):
    named = replace(AVRO, schema="views.avsc")
    with pytest.raises(ProjectInvalid, match=r"views\.avsc cannot be read"):
        with_schema(named, config)
    less = json.loads(AVRO.schema)
    less["fields"].pop()
    (contracts / "views.avsc").write_text(json.dumps(less))
    with pytest.raises(ProjectInvalid, match=r"views\.avsc: its schema has no field tags"):
        with_schema(named, config)
