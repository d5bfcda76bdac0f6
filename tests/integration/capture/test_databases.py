"""Tables of two databases are captured, each by a connector, a slot and generations of its database; they may have one name."""

import uuid
from contextlib import ExitStack, closing
from dataclasses import replace

import pytest
from tests.support.captured import captured_table, taken
from tests.support.transactions import Writer

from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import Tables
from lockstep.deploy import capture
from lockstep.deploy.plan import Capture
from lockstep.reconcile.source_rows import SourceUnreadable
from lockstep.reconcile.with_source import verify
from lockstep.settings import Database
from lockstep.stack import connect, connect_api, connector, postgres
from lockstep.stack.new_generation import begin_generation
from lockstep.stack.stack import Stack
from lockstep.status.captured import drifts

OTHER = f"crm_{uuid.uuid4().hex[:6]}"


@pytest.fixture
def two(stack):
    """The stack with another source database on the same server."""
    settings = stack.settings.model_copy(update={"databases": (Database(name=OTHER),)})
    postgres.post_start(settings)
    yield Stack(settings)
    with postgres.connected(settings, "postgres") as database, database.cursor() as sql:
        sql.execute(f"DROP DATABASE {OTHER} WITH (FORCE)")


def generations(spark, contract):
    return {row[0] for row in spark.table(Tables.of(contract).log).select("_generation").distinct().collect()}


def slots(settings):
    with postgres.connected(settings, "postgres") as database, database.cursor() as sql:
        sql.execute("SELECT slot_name, database FROM pg_replication_slots WHERE slot_name LIKE 'lockstep%'")
        return dict(sql.fetchall())


def test_the_same_table_of_two_databases_is_captured_from_both(spark, two, monkeypatch):
    settings = two.settings
    with ExitStack() as block:
        own = block.enter_context(captured_table(two))
        crm = block.enter_context(captured_table(two, database=OTHER, table=own.name))
        assert (own.topic, crm.topic) == (f"shop.public.{own.name}", f"{OTHER}.public.{own.name}")
        for contract in (own, crm):
            block.enter_context(taken(settings, contract))
        for number, database in enumerate(settings.sources):
            with closing(Writer(settings, own.name, seed=number, database=database)) as writer:
                writer.write(50)
        found = [verify(spark, settings, contract, 120) for contract in (own, crm)]
        assert [one.counts for one in found] == [{}, {}]
        assert slots(settings) == {"lockstep": "shop", f"lockstep_{OTHER}": OTHER}
        assert f"connector {OTHER} runs" in connect.check(settings)

        before = generations(spark, own)
        begin_generation(settings, OTHER)
        # Until a row has changed, silver is equal before it has the new generation.
        with closing(Writer(settings, own.name, seed=2, database=OTHER)) as writer:
            writer.write(10)
        assert [verify(spark, settings, contract, 120).counts for contract in (own, crm)] == [{}, {}]
        assert (generations(spark, own), max(generations(spark, crm))) == (before, 2), "of the other database alone"

        with postgres.connected(settings, OTHER) as database, database.cursor() as sql:
            sql.execute(f"ALTER TABLE public.{own.name} DROP COLUMN note")
        assert [*drifts(settings, [own.name, crm.name])] == [crm.name]

        # With its last table go the connector and the slot of this database, and no others.
        with monkeypatch.context() as patch:
            patch.delitem(CONTRACTS, crm.name)
            assert capture.look(settings) == Capture(gone=(f"{OTHER}.public.{own.name}",))
            connector.remove_unused(settings)
            assert connect_api.registered(settings, OTHER) == {}
            assert slots(settings) == {"lockstep": "shop"}


@pytest.mark.slow
def test_a_database_that_does_not_answer_is_named_and_the_others_are_compared(spark, two, captured):
    gone = replace(captured, name="gone", database="gone", topic="gone.public.gone")
    settings = two.settings.model_copy(
        update={"databases": (Database(name="gone", host="127.0.0.1", port=1), *two.settings.databases)}
    )
    with pytest.raises(SourceUnreadable, match=r"gone: the table public\.gone cannot be read"):
        verify(spark, settings, gone, 1)
    with taken(settings, captured):
        assert verify(spark, settings, captured, 120).counts == {}
