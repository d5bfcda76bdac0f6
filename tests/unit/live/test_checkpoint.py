"""Reading the files of a checkpoint."""

import pytest

from lockstep.live.checkpoint import (
    Checkpoint,
    batch_of,
    parse_commit,
    parse_offsets,
    state_files,
    store_directories,
)


def test_the_position_is_that_of_the_last_finished_batch(root):
    (root / "commits/3").unlink()
    assert Checkpoint(str(root)).last_batch() == 2
    assert Checkpoint(str(root)).position() == {"page_views": {0: 30, 1: 21}}


def test_a_checkpoint_without_batches_has_no_position(tmp_path):
    assert Checkpoint(str(tmp_path / "none")).last_batch() is None
    assert Checkpoint(str(tmp_path / "none")).position() == {}
    assert Checkpoint(str(tmp_path / "none")).files() == {}


def test_the_first_batch_is_known_as_long_as_its_file_is_kept(root):
    assert Checkpoint(str(root)).first_planned() == {"page_views": {0: 10, 1: 7}}
    (root / "offsets/0").unlink()
    assert Checkpoint(str(root)).first_planned() == {}


def test_an_offset_log_entry_has_the_offsets_the_watermark_and_the_settings():
    text = 'v1\n{"batchWatermarkMs":5,"batchTimestampMs":9,"conf":{"a":"b"}}\n{"views":{"2":7,"0":5}}\n-\n{"clicks":{"0":1}}'
    batch = parse_offsets(4, text)
    assert batch.offsets == {"views": {0: 5, 2: 7}, "clicks": {0: 1}}
    assert (batch.number, batch.watermark, batch.planned_at, batch.conf) == (4, 5, 9, {"a": "b"})


def test_the_offsets_of_several_sources_of_one_topic_are_joined():
    assert parse_offsets(0, 'v1\n{}\n{"views":{"0":5}}\n{"views":{"1":6}}').offsets == {"views": {0: 5, 1: 6}}


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it begins with '' and has 1 lines, not 'v1' and three or more"),
        ("v1", "it begins with 'v1' and has 1 lines"),
        ("v1\n{}", "it begins with 'v1' and has 2 lines"),
        ("v2\n{}\n{}", "it begins with 'v2' and has 3 lines"),
        ("v1\n{\n{}", "Expecting property name"),
        ("v1\n[]\n{}", "its second line is not an object"),
        ('v1\n{}\n{"views":{"0":', "Expecting value"),
    ],
)
def test_a_malformed_entry_of_the_offset_log_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_offsets(0, text)


def test_an_entry_of_the_commit_log_has_the_next_watermark():
    assert parse_commit('v1\n{"nextBatchWatermarkMs":1795178526526}') == 1795178526526


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it begins with '', not 'v1' and an object"),
        ("v1", "Expecting value"),
        ("v1\n", "Expecting value"),
        ("v2\n{}", "it begins with 'v2', not 'v1' and an object"),
        ("v1\n[]", "it begins with 'v1', not 'v1' and an object"),
        ('v1\n{"nextBatch', "Unterminated string"),
    ],
)
def test_a_malformed_entry_of_the_commit_log_is_refused_with_the_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        parse_commit(text)


def test_each_partition_of_each_store_has_a_directory():
    join = {"stateStoreInfo": [{"storeName": "left-keyToNumValues", "numPartitions": 1}]}
    count = {"stateStoreInfo": [{"storeName": "default", "numPartitions": 2}]}
    assert store_directories({1: join, 0: count}) == ["state/0/0", "state/0/1", "state/1/0/left-keyToNumValues"]


def test_a_store_is_loaded_from_its_newest_snapshot_and_the_changelogs_since():
    files = [f"state/0/0/{n}.changelog" for n in range(1, 8)] + [
        "state/0/0/3.zip",
        "state/0/0/5.zip",
        "state/0/1/1.zip",
    ]
    assert state_files(files, "state/0/0", 7) == (
        ["state/0/0/5.zip", "state/0/0/6.changelog", "state/0/0/7.changelog"],
        [],
    )
    assert state_files(files, "state/0/0", 4) == (["state/0/0/3.zip", "state/0/0/4.changelog"], [])
    files.remove("state/0/0/6.changelog")
    assert state_files(files, "state/0/0", 7)[1] == ["state/0/0/6.changelog"]


def test_the_batch_that_wrote_a_file_is_in_its_path():
    assert batch_of("offsets/7") == batch_of("commits/7") == batch_of("state/0/1/8.changelog") == 7
    assert batch_of("state/1/0/left-keyToNumValues/8.zip") == 7
    assert batch_of("state/0/0/_metadata/schema") is None
    assert batch_of("metadata") is None
