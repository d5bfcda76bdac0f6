"""A table of the source database that a real Debezium captures, and the pipeline that takes its changes."""

import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager

import psycopg2
from tests.support.transactions import TABLE, Writer

from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS, Contract
from lockstep.ingest import bronze
from lockstep.kafka_clients import ensure_topics
from lockstep.refine import silver
from lockstep.settings import Settings
from lockstep.stack.stack import Stack

COLUMNS = {
    "id": "BIGINT",
    "place": "STRING",
    "amount": "DECIMAL(12,3)",
    "any_number": "STRING",
    "at": "TIMESTAMP",
    "day": "DATE",
    "note": "STRING",
    "document": "STRING",
    "tags": "ARRAY<STRING>",
    "ratio": "DOUBLE",
    "flag": "BOOLEAN",
    "size": "BIGINT",
    "updated_at": "TIMESTAMP",
}


@contextmanager
def captured_table(
    stack: Stack,
    before: Callable[[], None] = lambda: None,
    required: tuple[str, ...] = ("id",),
    database: str = "",
    table: str = "",
) -> Iterator[Contract]:
    """A table with columns of many types and some rows; Debezium captures it until the block ends.

    Args:
        before: is called when the rows are there, and Debezium does not capture them yet.
        database: the source; the project's own by default.
        table: its name there; by default a new one, which the contract has too.
    """
    name = f"things_{uuid.uuid4().hex[:8]}"
    source, table = database or stack.settings.package, table or name
    contract = Contract(
        name=name,
        topic=f"{source}.public.{table}",
        kind="changes",
        database=database,
        columns=COLUMNS,
        key=("id",),
        unique_id=("id",),
        event_time="updated_at",
        valid_from="updated_at",
        required=required,
        partitions=1,
    )
    with closing(psycopg2.connect(stack.settings.dsn(source))) as connection:
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(TABLE.format(name=table))
    CONTRACTS[name] = contract
    ensure_topics(stack.settings, {name: contract})
    with closing(Writer(stack.settings, table, seed=0, database=source)) as writer:
        writer.write(10)
    before()
    ran = stack.pid("connect")
    stack.up(["connect"])
    try:
        yield contract
    finally:
        if not ran:
            stack.down(["connect"])
        del CONTRACTS[name]


@contextmanager
def taken(settings: Settings, contract: Contract, survives: tuple[type[Exception], ...] = ()) -> Iterator[None]:
    """While the block lasts, ingest and refine take what the topic has.

    Args:
        survives: errors after which a run is tried again, as Airflow would.
    """
    stopped = threading.Event()

    def work() -> None:
        while not stopped.is_set():
            try:
                with connect(settings, "pipeline") as spark:
                    while not stopped.wait(0.5):
                        bronze.ingest(spark, settings, contract, "run")
                        silver.refine(spark, settings, contract, "run")
            except survives:
                stopped.wait(1)

    with ThreadPoolExecutor(1) as threads:
        working = threads.submit(work)
        try:
            yield
        finally:
            stopped.set()
            # What has stopped it is why the block waits in vain.
            working.result()
