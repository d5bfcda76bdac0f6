"""A partitioned table is captured as one table, whatever partition a row is in, or moves to."""

import uuid
from contextlib import closing

import pytest
from tests.support.captured import captured_table, taken
from tests.support.transactions import Writer

from lockstep.reconcile.with_source import verify
from lockstep.stack import postgres

# Keys of the random transactions are on both sides.
PARTITION = """
ALTER TABLE public.{name} RENAME TO whole_{name};
CREATE TABLE public.{name} (LIKE public.whole_{name} INCLUDING ALL) PARTITION BY RANGE (id);
CREATE TABLE public.{name}_low PARTITION OF public.{name} FOR VALUES FROM (MINVALUE) TO (20);
CREATE TABLE public.{name}_high PARTITION OF public.{name} FOR VALUES FROM (20) TO (MAXVALUE);
ALTER TABLE public.{name}_low REPLICA IDENTITY FULL;
ALTER TABLE public.{name}_high REPLICA IDENTITY FULL;
INSERT INTO public.{name} SELECT * FROM public.whole_{name};
DROP TABLE public.whole_{name}
"""


@pytest.mark.slow
def test_the_lake_equals_a_partitioned_table_under_random_transactions(spark, settings, stack):
    name = f"parted_{uuid.uuid4().hex[:8]}"

    def partition() -> None:
        with postgres.connected(settings, settings.package) as database, database.cursor() as sql:
            sql.execute(PARTITION.format(name=name))

    with captured_table(stack, partition, table=name) as contract, taken(settings, contract):
        assert verify(spark, settings, contract, 120).counts == {}
        with closing(Writer(settings, name, seed=11)) as writer:
            writer.write(80)
        found = verify(spark, settings, contract, 120)
    assert (found.counts, found.rows > 10) == ({}, True), found
