"""`lockstep ledger repair` takes what a power cut has torn again from Kafka: nothing is lost, and nothing is there twice."""

import re
from collections.abc import Callable
from contextlib import closing
from typing import Any

import pytest
from click.testing import Result
from kafka import TopicPartition
from tests.support.shop import Shop
from tests.support.torn import cut, lose_data, newest_commits, remove
from typer.testing import CliRunner

from lockstep.cli.main import app
from lockstep.contracts import Contract
from lockstep.definition.tables import bronze_of, silver_of
from lockstep.errors import DataLoss, LedgerBroken
from lockstep.ingest.bronze import ingest
from lockstep.kafka_clients import admin
from lockstep.refine.silver import refine
from lockstep.settings import Settings


def run(command: str, stream: Contract, *options: str) -> Result:
    return CliRunner().invoke(app, ["ledger", command, stream.name, *options])


def repair(stream: Contract) -> Result:
    return run("repair", stream, "--by", "an operator", "--reason", "a power cut")


def test_torn_commits_are_taken_again_and_everything_goes_on(
    spark: Any, settings: Settings, stream: Contract, shop: Shop, rows: Callable[[str], list[Any]]
) -> None:
    def next_view() -> None:
        shop.view(f"e{len(shop.acknowledged)}", len(shop.acknowledged))
        shop.flush()
        assert ingest(spark, settings, stream, "run").rows == 1

    table = bronze_of(stream)
    next_view()
    for damage in (remove, cut, lose_data):
        next_view()
        next_view()
        refine(spark, settings, stream, "run")
        damage(newest_commits(settings, table))
        if damage is not lose_data:
            with pytest.raises(LedgerBroken, match="lockstep ledger repair"):
                ingest(spark, settings, stream, "run")
        assert run("verify", stream).exit_code == 1
        result = repair(stream)
        assert result.exit_code == 0, result.output
        assert "2 rows of" in result.output
        assert ingest(spark, settings, stream, "run") is None
        assert refine(spark, settings, stream, "run") is None, "silver had these offsets, and they are the same rows"
        next_view()
        assert "no commit is torn or missing" in repair(stream).output
        verified = run("verify", stream)
        assert verified.exit_code == 0, verified.output
    refine(spark, settings, stream, "run")
    sent = sorted(shop.acknowledged)
    assert sorted((row["partition"], row["offset"]) for row in rows(table)) == sent
    assert sorted((row["_partition"], row["_offset"]) for row in rows(silver_of(stream))) == sent
    assert "read again, by an operator" in run("gaps", stream).output


def test_what_kafka_does_not_have_any_more_is_not_repaired(
    spark: Any, settings: Settings, stream: Contract, shop: Shop
) -> None:
    for n in range(3):
        shop.view(f"e{n}", n)
        shop.flush()
        ingest(spark, settings, stream, "run")
    (partition, last) = shop.acknowledged[-1]
    with closing(admin(settings)) as client:
        client.delete_records({TopicPartition(stream.topic, partition): last})
    commits = {commit: commit.read_bytes() for commit in newest_commits(settings, bronze_of(stream))}
    remove([*commits])
    result = repair(stream)
    refusal = rf"had offsets \[1, 3\) of {stream.topic}-{partition}, and of them the log only has \[2, 3\)"
    assert isinstance(result.exception, DataLoss)
    assert re.search(refusal, str(result.exception))
    assert newest_commits(settings, bronze_of(stream))[-1] not in commits, "nothing was written"
    for commit, content in commits.items():
        commit.write_bytes(content)
    assert run("verify", stream).exit_code == 0
