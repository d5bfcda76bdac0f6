"""A captured table whose changes a test writes itself, in the form in which Debezium 3.6 sends them."""

import json

from tests.support.shop import START, Shop

from lockstep import lake
from lockstep.definition.tables import Tables
from lockstep.ingest import bronze
from lockstep.refine import silver


class Source:
    """The table orders, in a topic and tables of its own."""

    def __init__(self, spark, settings, contract, rows):
        self.spark, self.settings, self.contract, self._rows = spark, settings, contract, rows
        self.shop, self.generation = Shop(settings, contract), None

    def change(self, op, lsn, commit, before=None, after=None, partition=0, again=0, snapshot="false", headers=()):
        """A change with the LSN of its row, which follows the commit with an LSN. It is sent ``again`` seconds later."""
        sequence = json.dumps([commit and str(commit), str(lsn)])
        source = {"connector": "postgresql", "lsn": lsn, "sequence": sequence, "ts_ms": lsn, "snapshot": snapshot}
        value = {"before": before, "after": after, "op": op, "source": source}
        key = (after or before or {}).get("order_id") or ""
        if self.generation:
            headers = [("lockstep-generation", self.generation), *headers]
        self.shop.raw(json.dumps(value).encode(), lsn / 1000 + again, key, partition=partition, headers=[*headers])

    def insert(self, order_id, lsn, commit=None, kind="sale", **where):
        row = {"order_id": order_id, "kind": kind, "ordered_at": START.isoformat()}
        self.change("c", lsn, commit or lsn - 1, after=row, **where)

    def snapshot(self, lsn, after=0, commit=None, **kinds):
        """The table as it is now, which Debezium begins to read at an LSN; it is sent ``after`` seconds later.

        Where Debezium stops to read the log for it, it gives the rows the place where it has stopped: the LSN of its last change,
        and of the commit before that.
        """
        for number, (order_id, kind) in enumerate(kinds.items()):
            row = {"order_id": order_id, "kind": kind, "ordered_at": START.isoformat()}
            marker = "last_in_data_collection" if order_id == [*kinds][-1] else "true"
            self.change("r", lsn, commit, after=row, snapshot=marker, again=after + number / 1000)

    def delete(self, lsn, **before):
        self.change("d", lsn, lsn - 1, before=before)

    def truncate(self, lsn, **where):
        self.change("t", lsn, lsn - 1, **where)

    def refine(self):
        """Take everything that the topic has: also what silver writes there."""
        self.shop.flush()
        entries = []
        while bronze.ingest(self.spark, self.settings, self.contract, "run"):
            entries.append(silver.refine(self.spark, self.settings, self.contract, "run"))
        return entries

    def orders(self):
        """The rows that exist."""
        rows = self._rows(f"silver.{self.contract.name}")
        return {row["order_id"]: row["kind"] for row in rows if not row["_deleted"]}

    def reasons(self):
        table = Tables.of(self.contract).quarantine
        return sorted(row["_reason"] for row in self._rows(table)) if lake.exists(self.settings, table) else []
