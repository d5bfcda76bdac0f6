"""Late rows, which a view leaves out, can be merged by a replay; undo leaves them out again."""

from lockstep.replay import run


def views(rows):
    return {f"{row['window_start']:%H:%M}": row["views"] for row in rows}


def test_late_rows_are_merged_by_a_replay(spark, settings, shop, view, rows, redone, batch, asked):
    shop.view("on-time", 10)
    shop.view("late", 20, arrives_after=90)
    shop.view("another-minute", 70)
    shop.heartbeat(7200)
    shop.flush()
    assert batch().counts == {"counted": 2, "ignored": 1, "side_output": 0}
    gold, late = f"gold.{view.name}", f"late.{view.name}"
    assert views(rows(gold)) == {"10:00": 1, "10:01": 1}
    assert [(row["event_id"], row["_counted"]) for row in rows(late)] == [("late", False)]

    replay = redone(asked(late=True))
    assert views(rows(gold)) == {"10:00": 2, "10:01": 1}
    assert [row["event_id"] for row in rows(late)] == ["late"], "it is late all the same"

    run.undo(spark, settings, replay.id, "run", "tester")
    assert views(rows(gold)) == {"10:00": 1, "10:01": 1}
