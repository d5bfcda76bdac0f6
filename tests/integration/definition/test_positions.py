"""Positions of changes are texts that sort as the places of the source's log do."""

from random import Random

from lockstep.definition.events import position


def test_positions_sort_as_generation_commit_and_row_do(spark):
    dice = Random(7)
    lsns = [dice.randrange(10 ** dice.randrange(19)) for _ in range(200)]
    places = [(dice.choice([None, 1, 2, 10]), *dice.sample(lsns, 2)) for _ in range(500)]
    columns = "_generation INT, _commit_lsn BIGINT, _lsn BIGINT"
    rows = spark.createDataFrame(places, columns).select("*", position("users").alias("position")).collect()
    by_text = sorted(rows, key=lambda row: row["position"])
    numbers = [(row["_generation"] or 1, row["_commit_lsn"], row["_lsn"]) for row in by_text]
    assert numbers == sorted(numbers)
