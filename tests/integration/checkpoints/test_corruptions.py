"""A checkpoint that Spark wrote, broken in every way: the damage is found before the query starts, then repaired or refused."""

import shutil

import pytest

from lockstep.checkpoints import resets
from lockstep.checkpoints.errors import CheckpointBroken
from lockstep.checkpoints.verify import Finding, verify, verify_query
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
STATE = ["state/0/0/2.changelog", "state/1/0/3.changelog"]


@pytest.fixture
def three_batches(followed, shop):
    def run(conf=None):
        with followed(conf) as process_all:
            for n in range(3):
                for user in range(8):
                    shop.view(f"{n}-{user}", n * 60 + 10, user_id=f"u{user}")
                shop.flush()
                process_all()

    return run


@pytest.mark.slow
def test_every_broken_file_is_found_before_the_query_starts(
    spark, settings, view, three_batches, checkpoint_path, live, counts
):
    three_batches()
    generation, checkpoint = generations.get(settings, view.name), checkpoint_path()
    assert verify(settings, [generation]) == []
    copy = checkpoint.with_name("copy")
    shutil.copytree(checkpoint, copy)
    for break_it in (remove, cut, flip):
        for path in LOGS + STATE:
            shutil.rmtree(checkpoint)
            shutil.copytree(copy, checkpoint)
            break_it(checkpoint / path)
            problems = verify(settings, [generation])
            assert [p.path for p in problems] == [path], f"{break_it.__name__} {path}: {problems}"
            assert problems[0].repairable == (path in LOGS)
    # The newest entry of both logs: without the journal, only the table would show that it is missing.
    shutil.rmtree(checkpoint)
    shutil.copytree(copy, checkpoint)
    remove(checkpoint / "offsets/2")
    remove(checkpoint / "commits/2")
    outcomes = verify_query(settings, view)
    assert [isinstance(outcome, Finding) and outcome.repairable for outcome in outcomes] == [True, True]
    assert [str(outcome).split()[0] for outcome in outcomes] == ["mends", "mends"]

    before = counts()
    live()
    assert counts() == before, "the logs were restored, and nothing was counted twice"
    assert (checkpoint / "offsets/2").read_bytes() == (copy / "offsets/2").read_bytes()

    remove(checkpoint / "state/0/0/2.changelog")
    with pytest.raises(CheckpointBroken, match=r"state/0/0/2\.changelog is missing.*--to earliest"):
        live()
    assert counts() == before
    resets.reset(settings, resets.plan(spark, settings, view, "earliest"), "state is lost", "tester")
    live()
    assert counts() == before, "computed again from the log"


def test_every_broken_snapshot_is_found(spark, settings, view, three_batches, checkpoint_path):
    three_batches({"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "false"})
    generation, checkpoint = generations.get(settings, view.name), checkpoint_path()
    assert verify(settings, [generation]) == []
    newest = max(int(file.stem) for file in checkpoint.glob("state/0/0/*.zip"))
    for break_it in (cut, flip, remove):
        for pattern in (f"state/0/0/{newest}.zip", "state/0/0/SSTs/*.sst"):
            file = max(checkpoint.glob(pattern), key=lambda path: path.stat().st_mtime_ns)
            content = file.read_bytes()
            break_it(file)
            assert verify(settings, [generation]) != [], f"{break_it.__name__} {file}"
            file.write_bytes(content)
    assert verify(settings, [generation]) == []
