"""Lag per partition, batch and live, as `lockstep ledger lag` prints it for a running broker."""

import json
from collections import Counter

from typer.testing import CliRunner

from lockstep import service
from lockstep.catalog import connect
from lockstep.cli.main import app
from lockstep.ingest.bronze import ingest


def lags(stream):
    result = CliRunner().invoke(app, ["ledger", "lag", stream.name, "--json"])
    assert result.exit_code == 0, result.output
    return {p["partition"]: p for p in json.loads(result.stdout)[stream.name]}


def test_each_partition_has_the_lag_of_batch_and_live(spark, settings, stream, view, shop, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_VIEWS", view.name)
    for n in range(30):
        shop.view(f"e{n}", n, user_id=f"u{n}")
    shop.flush()
    sent = Counter(partition for partition, _ in shop.acknowledged)
    live = f"live.{view.name}"
    before = lags(stream)
    assert {n: (p["end"], p["lag"]["bronze"], p["lag"][live]) for n, p in before.items()} == {
        p: (sent[p], sent[p], sent[p]) for p in range(stream.partitions)
    }
    ingest(spark, settings.model_copy(update={"max_offsets_per_run": 12}), stream, "run")
    halfway = lags(stream)
    assert sum(p["lag"]["bronze"] for p in halfway.values()) == 18
    assert all(p["position"]["bronze"] + p["lag"]["bronze"] == p["end"] for p in halfway.values())
    with connect(settings, "live") as own:
        running = service.start(own, settings, view)
        running.processAllAvailable()
        running.stop()
    after = lags(stream)
    assert {p["lag"][live] for p in after.values()} == {0}
    assert [p["lag"]["bronze"] for p in after.values()] == [p["lag"]["bronze"] for p in halfway.values()]
