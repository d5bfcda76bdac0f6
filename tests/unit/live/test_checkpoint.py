"""What lies in a checkpoint."""

import pytest

from lockstep.live.checkpoint import Checkpoint, chain, number_of, parse_commit, parse_offsets, stores


def test_the_position_is_that_of_the_last_batch_that_is_done(root):
    (root / "commits/3").unlink()
    assert Checkpoint(str(root)).last() == 2
    assert Checkpoint(str(root)).position() == {"page_views": {0: 30, 1: 21}}


def test_nothing_is_done_before_the_first_batch(tmp_path):
    assert Checkpoint(str(tmp_path / "none")).last() is None
    assert Checkpoint(str(tmp_path / "none")).position() == {}
    assert Checkpoint(str(tmp_path / "none")).files() == {}


def test_a_batch_says_its_offsets_watermark_and_settings():
    text = 'v1\n{"batchWatermarkMs":5,"batchTimestampMs":9,"conf":{"a":"b"}}\n{"views":{"2":7,"0":5}}\n-\n{"clicks":{"0":1}}'
    batch = parse_offsets(4, text)
    assert batch.offsets == {"views": {0: 5, 2: 7}, "clicks": {0: 1}}
    assert (batch.number, batch.watermark, batch.planned_at, batch.conf) == (4, 5, 9, {"a": "b"})


def test_a_topic_that_is_read_by_several_sources_is_one():
    assert parse_offsets(0, 'v1\n{}\n{"views":{"0":5}}\n{"views":{"1":6}}').offsets == {"views": {0: 5, 1: 6}}


@pytest.mark.parametrize(
    "text", ["", "v1", "v1\n{}", "v2\n{}\n{}", "v1\n{\n{}", "v1\n[]\n{}", 'v1\n{}\n{"views":{"0":']
)
def test_what_is_no_entry_of_the_offset_log_is_not_taken_for_one(text):
    with pytest.raises(ValueError, match=r"."):
        parse_offsets(0, text)


def test_a_commit_says_the_next_watermark():
    assert parse_commit('v1\n{"nextBatchWatermarkMs":1795178526526}') == 1795178526526
    for text in ("", "v1", "v1\n", "v2\n{}", "v1\n[]", 'v1\n{"nextBatch'):
        with pytest.raises(ValueError, match=r"."):
            parse_commit(text)


def test_each_partition_of_each_store_has_a_directory():
    join = {"stateStoreInfo": [{"storeName": "left-keyToNumValues", "numPartitions": 1}]}
    count = {"stateStoreInfo": [{"storeName": "default", "numPartitions": 2}]}
    assert stores({1: join, 0: count}) == ["state/0/0", "state/0/1", "state/1/0/left-keyToNumValues"]


def test_a_store_needs_its_newest_snapshot_and_the_changes_since():
    files = [f"state/0/0/{n}.changelog" for n in range(1, 8)] + [
        "state/0/0/3.zip",
        "state/0/0/5.zip",
        "state/0/1/1.zip",
    ]
    assert chain(files, "state/0/0", 7) == (
        ["state/0/0/5.zip", "state/0/0/6.changelog", "state/0/0/7.changelog"],
        [],
    )
    assert chain(files, "state/0/0", 4) == (["state/0/0/3.zip", "state/0/0/4.changelog"], [])
    files.remove("state/0/0/6.changelog")
    assert chain(files, "state/0/0", 7)[1] == ["state/0/0/6.changelog"]


def test_files_know_their_batch():
    assert number_of("offsets/7") == number_of("commits/7") == number_of("state/0/1/8.changelog") == 7
    assert number_of("state/1/0/left-keyToNumValues/8.zip") == 7
    assert number_of("state/0/0/_metadata/schema") is None
    assert number_of("metadata") is None
