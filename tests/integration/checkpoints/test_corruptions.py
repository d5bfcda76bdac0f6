"""A checkpoint that Spark wrote, broken in every way: detected before the query starts, then mended or refused."""

import shutil

import pytest

from lockstep.checkpoints import resets
from lockstep.checkpoints.errors import CheckpointBroken
from lockstep.checkpoints.form import verified
from lockstep.checkpoints.verify import verify
from lockstep.live import generations


def remove(file):
    file.unlink()


def cut(file):
    file.write_bytes(file.read_bytes()[:-3])


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 4
    file.write_bytes(content)


LOGS = ["metadata", "offsets/0", "offsets/1", "offsets/2", "commits/0", "commits/2", "sources/0/0"]
STATE = ["state/0/0/2.changelog", "state/1/1/3.changelog"]


@pytest.fixture
def three_batches(followed, shop):
    def run(conf=None):
        with followed(conf) as taken:
            for n in range(3):
                for user in range(8):
                    shop.view(f"{n}-{user}", n * 60 + 10, user_id=f"u{user}")
                shop.flush()
                taken()

    return run


def test_every_broken_file_is_found_before_the_query_starts(spark, settings, view, three_batches, place, live, counts):
    three_batches()
    generation, whole = generations.get(settings, view.name), place()
    assert verify(settings, generation) == []
    kept = whole.with_name("kept")
    shutil.copytree(whole, kept)
    for break_it in (remove, cut, flip):
        for path in LOGS + STATE:
            shutil.rmtree(whole)
            shutil.copytree(kept, whole)
            break_it(whole / path)
            found = verify(settings, generation)
            assert [p.path for p in found] == [path], f"{break_it.__name__} {path}: {found}"
            assert (found[0].body is not None) == (path in LOGS)
    # The tip of both logs: without the journal, only the table itself knows of it.
    shutil.rmtree(whole)
    shutil.copytree(kept, whole)
    remove(whole / "offsets/2")
    remove(whole / "commits/2")
    assert [line.split()[0] for line in verified(settings, view)] == ["mends", "mends"]

    shop_rows = counts()
    live()
    assert counts() == shop_rows, "the logs were put back, and nothing was counted twice"
    assert (whole / "offsets/2").read_bytes() == (kept / "offsets/2").read_bytes()

    remove(whole / "state/0/0/2.changelog")
    with pytest.raises(CheckpointBroken, match=r"state/0/0/2\.changelog is missing.*--to earliest"):
        live()
    assert counts() == shop_rows
    resets.reset(settings, resets.plan(spark, settings, view, "earliest"), "state is lost", "tester")
    live()
    assert counts() == shop_rows, "computed again from the log"


def test_every_broken_snapshot_is_found(spark, settings, view, three_batches, place):
    three_batches({"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false"})
    generation, whole = generations.get(settings, view.name), place()
    assert verify(settings, generation) == []
    newest = max(int(file.stem) for file in whole.glob("state/0/0/*.zip"))
    for break_it in (cut, flip, remove):
        for pattern in (f"state/0/0/{newest}.zip", "state/0/0/SSTs/*.sst"):
            file = max(whole.glob(pattern), key=lambda found: found.stat().st_mtime_ns)
            before = file.read_bytes()
            break_it(file)
            assert verify(settings, generation) != [], f"{break_it.__name__} {file}"
            file.write_bytes(before)
    assert verify(settings, generation) == []
