"""What it costs the Spark server to parse a record of each stream, in CPU microseconds, as refine parses few rows.

On a stack that has records, with nothing else at work (``lockstep down``, ``lockstep up postgres kafka spark``)::

    python benchmarks/parsing.py --rounds 12

Two versions of the code can be compared on one server: run it from either checkout, in turns.
"""

import argparse

import psutil

from lockstep import ledger, settings
from lockstep.catalog import connect
from lockstep.contracts import CONTRACTS
from lockstep.definition.tables import bronze_of
from lockstep.ledger.ranges import Range, ends
from lockstep.refine.small_slice import AT_ONCE, parsed
from lockstep.stack.stack import Stack

# A stream with fewer has nothing but the price of a query.
FEWEST = 500


def main() -> None:
    """Print a line for each stream."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--rounds", type=int, default=12)
    arguments.add_argument("--rows", type=int, default=6000, help="the newest of each stream, at most")
    options = arguments.parse_args()
    config = settings.load()
    pid = Stack(config).pid("spark")
    if pid is None:
        raise SystemExit("The Spark server does not run: `lockstep up postgres kafka spark` first.")
    server = psutil.Process(pid)

    def cpu() -> float:
        times = server.cpu_times()
        return times.user + times.system

    print(f"{'stream':20s} {'rows':>6s} {'µs':>6s}")
    with connect(config, "benchmark") as spark:
        for name, contract in CONTRACTS.items():
            entry = ledger.latest(config, bronze_of(contract))
            if entry is None:
                continue
            of_each = min(options.rows, AT_ONCE) // len(ends(entry.ranges))
            newest = [Range(r.topic, r.topic_id, r.partition, max(r.end - of_each, 0), r.end) for r in entry.ranges]
            rows = parsed(spark, config, contract, newest).num_rows
            if rows < FEWEST:
                continue
            before = cpu()
            for _ in range(options.rounds):
                parsed(spark, config, contract, newest)
            print(f"{name:20s} {rows:6d} {(cpu() - before) / options.rounds / rows * 1e6:6.0f}", flush=True)


if __name__ == "__main__":
    main()
