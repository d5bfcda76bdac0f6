"""The actions on checkpoints and the limits of their fields. The DAG's form imports this too, so it imports nothing heavy."""

from enum import StrEnum


class Action(StrEnum):
    """What can be done with the checkpoints of the live queries."""

    LIST = "list"
    VERIFY = "verify"
    INSPECT = "inspect"
    COMPATIBLE = "compatible"
    SAVEPOINT = "savepoint"
    RESTORE = "restore"
    RESET = "reset"
    FORK = "fork"
    SHARE = "share"


DESCRIPTIONS = {
    Action.LIST: "where each query is",
    Action.VERIFY: "is every file whole?",
    Action.INSPECT: "the state of one query",
    Action.COMPATIBLE: "can the queries of this code resume?",
    Action.SAVEPOINT: "copy where one query is",
    Action.RESTORE: "continue from a savepoint",
    Action.RESET: "compute one query again",
    Action.FORK: "a changed view continues from here",
    Action.SHARE: "all views share jobs again, from gold",
}
# These are about all queries when none is named.
FOR_ALL_QUERIES = frozenset({Action.LIST, Action.VERIFY, Action.COMPATIBLE, Action.SHARE})
# These are recorded with the person who asked for them.
NEEDS_PERSON = frozenset({Action.SAVEPOINT, Action.RESTORE, Action.RESET, Action.FORK, Action.SHARE})
# These change what a query computes, so they are recorded with a reason too.
NEEDS_REASON = NEEDS_PERSON - {Action.SAVEPOINT}

# The names of savepoints are names of directories in the lake, so they are plain. Every file system allows 63 characters.
SAVEPOINT_NAME = "[a-z0-9][a-z0-9_-]{0,62}"
# What a reset may start at: a word, a time, or an offset for each partition. 2,000 characters are about 100 partitions.
RESET_TO = "[A-Za-z0-9_.:,=+-]{1,2000}"
# A person's name or reason is any text, as long as a few sentences.
LONGEST_TEXT = 300
