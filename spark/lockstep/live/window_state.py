"""What the state of a job of windowed views consists of: a file of its checkpoint, written before the first batch.

Spark goes on from a state only with the columns that it was written with. A view may leave the job, or its definition may change
in another job, so the columns of all views are recorded with the checkpoint. Savepoints copy the file with the others.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from lockstep.definition.view import Grouping

if TYPE_CHECKING:
    from lockstep.live.checkpoint import Checkpoint

# Below the checkpoint. Spark has no file of this name.
FILE = "windows.json"


def load(checkpoint: "Checkpoint") -> dict[str, Grouping]:
    """By label, in the order of the state's columns; empty if the job has not started yet."""
    try:
        text = checkpoint.read(FILE)
    except FileNotFoundError:
        return {}
    return {label: Grouping(**grouping) for label, grouping in json.loads(text).items()}


def dump(groupings: Mapping[str, Grouping]) -> bytes:
    """The content of the file."""
    return json.dumps({label: asdict(grouping) for label, grouping in groupings.items()}).encode()
