"""Lag per partition, batch and live, as `lockstep ledger lag` tells it on a running broker."""

import json
from collections import Counter

from typer.testing import CliRunner

from lockstep import service
from lockstep.catalog import connect
from lockstep.cli.main import app
from lockstep.ingest.bronze import ingest


def told(stream):
    result = CliRunner().invoke(app, ["ledger", "lag", stream.name, "--json"])
    assert result.exit_code == 0, result.output
    return {p["partition"]: p for p in json.loads(result.stdout)[stream.name]}


def test_each_partition_tells_how_far_batch_and_live_are_behind(spark, settings, stream, view, shop, monkeypatch):
    monkeypatch.setenv("LOCKSTEP_VIEWS", view.name)
    for n in range(30):
        shop.view(f"e{n}", n, user_id=f"u{n}")
    shop.flush()
    sent = Counter(partition for partition, _ in shop.acknowledged)
    live = f"live.{view.name}"
    before = told(stream)
    assert {p: (one["end"], one["lag"]["bronze"], one["lag"][live]) for p, one in before.items()} == {
        p: (sent[p], sent[p], sent[p]) for p in range(stream.partitions)
    }
    ingest(spark, settings.model_copy(update={"max_offsets_per_run": 12}), stream, "run")
    halfway = told(stream)
    assert sum(one["lag"]["bronze"] for one in halfway.values()) == 18
    assert all(one["position"]["bronze"] + one["lag"]["bronze"] == one["end"] for one in halfway.values())
    with connect(settings, "live") as own:
        running = service.start(own, settings, view)
        running.processAllAvailable()
        running.stop()
    after = told(stream)
    assert {one["lag"][live] for one in after.values()} == {0}
    assert [one["lag"]["bronze"] for one in after.values()] == [one["lag"]["bronze"] for one in halfway.values()]
