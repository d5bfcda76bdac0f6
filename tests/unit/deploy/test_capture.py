"""What the plan says of tables that are captured from now on."""

from dataclasses import replace

import pytest

from lockstep.contracts import CONTRACTS
from lockstep.deploy.capture import lacks, server_lacks
from lockstep.deploy.plan import Capture, Observed, plan
from lockstep.stack.source import SourceServer, SourceTable

ORDERS = CONTRACTS["orders"]
SOUND = SourceTable(ORDERS.unique_id, frozenset(ORDERS.columns), has_old_rows=True, is_published=True, is_readable=True)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (SOUND, []),
        (None, ["the database has no such table"]),
        (replace(SOUND, key=()), ["its primary key is missing, and the contract's unique_id (order_id)"]),
        (replace(SOUND, has_old_rows=False), ["its deletes have no more than the key"]),
        (replace(SOUND, is_published=False), ["the publication lockstep does not have it"]),
        (
            replace(SOUND, is_partitioned=True, is_published=False),
            ["the publication lockstep has its partitions, and not the table"],
        ),
        (replace(SOUND, is_readable=False), ["the platform's user may not read it"]),
        (replace(SOUND, columns=SOUND.columns - {"country"}), ["it has no column country, which will be null"]),
    ],
)
def test_what_a_table_lacks_is_said_with_the_way_to_it(table: SourceTable | None, said: list[str]) -> None:
    assert [line.partition(":")[0] for line in lacks("public.orders", ORDERS, table)] == said


def test_what_helps_names_the_table_as_sql_does() -> None:
    (said,) = lacks("public.Orders", ORDERS, replace(SOUND, has_old_rows=False))
    assert said.endswith(': ALTER TABLE public."Orders" REPLICA IDENTITY FULL')


def test_a_partitioned_table_has_old_rows_where_its_partitions_have() -> None:
    poor = replace(SOUND, is_partitioned=True, has_old_rows=False)
    (said,) = lacks("public.orders", ORDERS, poor)
    assert said.endswith("each of its partitions: ALTER TABLE ... REPLICA IDENTITY FULL")


def test_what_a_server_lacks_is_said_before_a_table_is_captured() -> None:
    assert [*server_lacks("crm", SourceServer("logical", "reader", may_replicate=True))] == []
    assert [*server_lacks("crm", SourceServer("replica", "reader", may_replicate=False))] == [
        "the server of crm has wal_level = replica: set it to logical, and start the server again",
        "the user reader may not read the log of crm: ALTER ROLE reader REPLICATION",
    ]


def test_a_new_table_comes_with_what_it_lacks_and_one_that_is_gone_is_removed() -> None:
    capture = Capture(("public.tips",), ("public.old",), {"public.tips": ("it has no column note",)})
    assert [str(change) for change in plan(Observed(capture=capture))] == [
        "! source table public.tips: it has no column note",
        "+ source table public.tips: is captured; Debezium reads its rows first, and the other tables wait meanwhile",
        "- source table public.old: its changes are not read any more",
    ]
