"""Decides the commands of partition 0, a few in each transaction, until the test ends it: ``python decider.py NAME``."""

import sys
from contextlib import closing
from dataclasses import replace

from lockstep import settings
from lockstep.commands import processor
from shop.aggregates.accounts import AGGREGATE

if __name__ == "__main__":
    processor._COMMANDS = 3
    with closing(
        processor.Processor(settings.load(), replace(AGGREGATE, name=sys.argv[1], partitions=1), 0)
    ) as decider:
        while True:
            decider.run_once()
