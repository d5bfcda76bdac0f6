"""A live table whose newest commits a power cut has torn: its query begins again, because its checkpoint is ahead."""

import pytest
from tests.support.slow import slow
from tests.support.torn import cut, lose_data, newest_commits
from typer.testing import CliRunner

from lockstep.checkpoints import resets
from lockstep.cli.main import app
from lockstep.definition.tables import live_of
from lockstep.ledger.torn import torn_tables
from lockstep.live import generations
from lockstep.reconcile.run import reconcile


def dies(*_):
    raise ConnectionError("the power is cut again")


@pytest.mark.parametrize("damage", [slow(cut), lose_data])
def test_a_live_table_has_all_rows_again_and_equals_batch(
    damage, spark, settings, view, minutes, batch, live, counts, monkeypatch
):
    for minute in range(3):
        minutes(range(minute, minute + 1))
        live()
    table = live_of(view)
    damage(newest_commits(settings, table))
    assert table in torn_tables(settings)
    command = ["ledger", "repair", table, "--by", "an operator", "--reason", "a power cut"]
    with monkeypatch.context() as patch:
        patch.setattr(resets, "reset", dies)
        assert isinstance(CliRunner().invoke(app, command).exception, ConnectionError)
    assert generations.current(settings, view.name) == 1
    result = CliRunner().invoke(app, command)
    assert result.exit_code == 0, (result.output, result.exception)
    assert "generation 2 begins" in result.output
    assert table not in torn_tables(settings)
    assert generations.current(settings, view.name) == 2
    assert "no commit is torn" in CliRunner().invoke(app, command).output
    minutes(range(3, 4))
    live()
    assert counts() == [(f"10:0{minute}", 2) for minute in range(4)]
    batch()
    assert reconcile(spark, settings, view, "run").verdict == "equal"
