"""The manifest of a savepoint, and the checkpoint that a query continues from."""

import json
import uuid

import pytest
from tests.support.checkpoints import write

from lockstep.checkpoints.errors import ActionRefused, CheckpointBroken
from lockstep.checkpoints.savepoints import (
    MANIFEST,
    Savepoint,
    copy_to_checkpoint,
    list_savepoints,
    load_savepoint,
    relocate_schema,
    savepoint_location,
)
from lockstep.live.checkpoint import Checkpoint

REASON = "the customers' ids were swapped; R&D asked for it, a refund of $5 {{ x }}"
DIGEST = "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"  # of the byte x


def savepoint(**changes):
    values = {
        "query": "a",
        "name": "first",
        "generation": 1,
        "batch": 3,
        "offsets": {"page_views": {0: 40, 1: 28}},
        "since": None,
        "table_version": 5,
        "taken_at": "2026-11-21T09:00:00+00:00",
        "by": "O'Neill & Sons",
        "run_id": None,
        "code_version": "1",
        "files": {"checkpoint/offsets/3": DIGEST, "checkpoint/metadata": DIGEST},
        "reason": REASON,
    }
    return Savepoint(**values | changes)


@pytest.fixture
def saved(settings):
    """A savepoint in the lake."""
    return store(settings, savepoint())


def store(settings, manifest):
    location = settings.home / savepoint_location(settings, manifest.reference)
    for path in manifest.files:
        write(location, path, b"x")
    write(location, MANIFEST, manifest.to_json().encode())
    return manifest


def test_a_manifest_is_read_as_it_was_written_whatever_people_have_written_into_it():
    assert Savepoint.from_json(savepoint().to_json()) == savepoint()


def test_a_savepoint_is_found_and_listed_by_age(settings, saved):
    younger = store(settings, savepoint(name="another", taken_at="2026-11-22T09:00:00+00:00"))
    assert load_savepoint(settings, "a/first") == saved
    assert list_savepoints(settings, "a") == [saved, younger]


def test_an_unknown_savepoint_is_refused_with_the_names_that_exist(settings, saved):
    with pytest.raises(ActionRefused, match="a has no savepoint other; it has: first"):
        load_savepoint(settings, "a/other")


def test_a_savepoint_with_a_changed_file_is_refused(settings, saved):
    write(settings.home / savepoint_location(settings, "a/first"), "checkpoint/offsets/3", b"y")
    with pytest.raises(CheckpointBroken, match="checkpoint/offsets/3 is missing or is not what it was"):
        load_savepoint(settings, "a/first")


def test_each_copy_has_an_id_of_its_own_which_stays_the_same(settings, saved, tmp_path):
    copies = [str(tmp_path / name) for name in ("b", "c")]
    for location in [*copies, *copies]:
        copy_to_checkpoint(settings, "a/first", location)
    ids = [Checkpoint(location).id() for location in copies]
    assert ids == [str(uuid.uuid5(uuid.NAMESPACE_URL, location)) for location in copies]
    assert Checkpoint(copies[0]).read("offsets/3") == b"x"


@pytest.mark.parametrize(
    ("old", "location", "new"),
    [
        ("file:/lake/_checkpoints/a/1/state/0/_stateSchema/x", "/lake/_checkpoints/b/2", "file:/lake/_checkpoints/b/2"),
        (
            "s3a://lake/_checkpoints/a/1/state/0/_stateSchema/x",
            "s3a://lake/_checkpoints/b/2",
            "s3a://lake/_checkpoints/b/2",
        ),
    ],
)
def test_the_metadata_of_a_copy_names_its_own_schema_files(old, location, new):
    metadata = {"operatorInfo": {}, "stateStoreInfo": [{"storeName": "default", "stateSchemaFilePaths": [old]}]}
    text = relocate_schema(f"v2\n{json.dumps(metadata)}", location)
    assert text.startswith("v2\n")
    store = json.loads(text.partition("\n")[2])["stateStoreInfo"][0]
    assert store == {"storeName": "default", "stateSchemaFilePaths": [f"{new}/state/0/_stateSchema/x"]}
