"""A reset query: none of its writes is skipped, and no row is half counted."""

import os
import time

import pytest

from lockstep import lake
from lockstep.checkpoints import actions, form, resets
from lockstep.checkpoints.errors import ActionRefused, CheckpointBroken
from lockstep.checkpoints.tidy import tidy
from lockstep.control.database import control
from lockstep.ingest.offsets import topic_offsets
from lockstep.live import generations
from lockstep.reconcile.run import reconcile


def reset(spark, settings, view, to):
    return resets.reset(settings, resets.plan(spark, settings, view, to), "a test", "tester").generation


def spoil(spark, view):
    """Put wrong numbers into all rows, so that a test sees which rows were computed again."""
    spark.sql(f"UPDATE live.{view.name} SET views = 9")


def test_a_query_can_be_reset_to_a_time_to_offsets_and_to_the_beginning(
    spark, settings, stream, view, minutes, batch, live, counts, checkpoint_path
):
    minutes(range(4))
    batch()
    live()
    spoil(spark, view)
    assert reset(spark, settings, view, "2026-11-10T10:01:30Z") == 2
    live()
    assert counts() == [("10:00", 9), ("10:01", 9), ("10:02", 2), ("10:03", 2)], "only whole windows after the time"

    # Half of minute 2 lies below these offsets, so minute 3 is the first of which it has every event.
    partitions = topic_offsets(settings, stream.topic).partitions
    used = max(partitions, key=lambda p: partitions[p][1])
    spoil(spark, view)
    assert reset(spark, settings, view, ",".join(f"{p}={5 if p == used else 0}" for p in partitions)) == 3
    minutes(range(4, 6))
    live()
    old, new = [("10:00", 9), ("10:01", 9), ("10:02", 9)], [("10:03", 2), ("10:04", 2), ("10:05", 2)]
    assert counts() == old + new

    spark.sql(f"UPDATE live.{view.name} SET page = 'which nobody has viewed'")
    assert reset(spark, settings, view, "earliest") == 4
    live()
    assert counts() == [(f"10:0{minute}", 2) for minute in range(6)]
    batch()
    assert reconcile(spark, settings, view, "run").verdict == "equal"

    # Batch has seen no more than the live query, so the windows from minute 5 on are open.
    with pytest.raises(ActionRefused, match="half counted"):
        reset(spark, settings, view, "2026-11-10T10:07:00Z")
    assert generations.current(settings, view.name) == 4

    root = checkpoint_path().parent
    long_ago = time.time() - (settings.retain_hours + 1) * 3600
    for file in [root / "1", root / "4", *(root / "1").rglob("*"), *(root / "4").rglob("*")]:
        os.utime(file, (long_ago, long_ago))
    assert f"{view.name}/1" in tidy(settings)
    assert sorted(path.name for path in root.iterdir()) == ["2", "3", "4"], "young checkpoints and the current one stay"


@pytest.mark.parametrize(
    ("to", "reason"),
    [
        ("0=0,1=0,2=999999", "out of range"),
        ("0=0", "give an offset for each"),
        ("0=0,1=0,2=0,7=0", "and for no other"),
        ("clicks:0=0", "reads"),
        ("yesterday", "not where a query can begin"),
        ("2026-11-10T10:00:00", "with its zone"),
        ("2026-11-10T10:00:00Z", "final not at all yet"),
    ],
)
def test_a_start_that_does_not_exist_or_would_half_count_rows_is_refused(to, reason, spark, settings, view, stream):
    with pytest.raises(ActionRefused, match=reason):
        resets.plan(spark, settings, view, to)
    assert generations.current(settings, view.name) == 1


def test_a_generation_that_a_restored_control_database_does_not_know_is_refused_and_never_taken_again(
    spark, settings, view, minutes, live, counts
):
    minutes(range(2))
    live()
    assert reset(spark, settings, view, "earliest") == 2
    live()
    with control(settings) as connection, connection.cursor() as cursor:
        cursor.execute("DELETE FROM live_generations WHERE query = %s AND generation = 2", (view.name,))
    unknown = f"{view.name}/2 is a later generation, of which the control database does not know"
    with pytest.raises(CheckpointBroken, match=unknown):
        live()
    spoil(spark, view)
    assert reset(spark, settings, view, "earliest") == 3
    live()
    assert counts() == [("10:00", 2), ("10:01", 2)]


def test_a_reason_is_data_wherever_it_is_stored(spark, settings, view, minutes, live, counts):
    reason = (
        "the customers' ids were swapped; R&D asked for it; refund of $5 missed; see ticket {{ conn.password }} $(id) `id` "
        "${spark.master} ${env:HOME} %s %(by)s {0} '; DROP TABLE live_generations; -- ../../etc/passwd"
    )
    by = 'O\'Neill "ops" <b>&</b>'
    minutes(range(2))
    live()
    values = {"action": "reset", "query": view.name, "to": "earliest", "reason": reason, "by": by}
    (outcome,) = actions.carry_out(settings, form.request(values))
    assert (outcome.generation, outcome.plan.query) == (2, view.name)
    live()
    generation = generations.get(settings, view.name)
    assert (generation.number, generation.reason, generation.by) == (2, reason, by)
    records = [commit.record for commit in lake.commits(settings, f"live.{view.name}")]
    (record,) = [record for record in records if record.get("writer") == "generation"]
    assert (record["reason"], record["by"]) == (reason, by)
    assert counts() == [("10:00", 2), ("10:01", 2)]
