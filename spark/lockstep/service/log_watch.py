"""Look again and again whether the topics of live queries are still the ones that bronze has read, and how many records arrive.

Spark knows the offsets of its checkpoint, but neither topic ids nor leader epochs: it would go on in another log without a word.
"""

import logging
import threading
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka.errors import KafkaError

from lockstep.ingest.continuity import offsets_and_changed
from lockstep.kafka_clients import KafkaUnavailable
from lockstep.service.pace import Load

if TYPE_CHECKING:
    from lockstep.contracts import Contract
    from lockstep.errors import LockstepError
    from lockstep.settings import Settings

log = logging.getLogger("lockstep.live")
# A look costs a connection and some small requests.
_SECONDS = 20.0


@dataclass
class LogWatch:
    """Watches the topics of some streams, from a thread of its own.

    Args:
        changed: by topic, what has become of those that have changed, at the last look.
        load: how many records arrive.
    """

    settings: "Settings"
    contracts: Iterable["Contract"]
    changed: Mapping[str, "LockstepError"] = field(default_factory=dict)
    load: Load = field(init=False)

    def __post_init__(self) -> None:
        self.load = Load(self.settings.cores)

    def run(self, stopping: threading.Event) -> None:
        """Look until ``stopping`` is set. A broker that does not answer is asked again."""
        while not stopping.wait(_SECONDS):
            try:
                self.look()
            except (KafkaUnavailable, KafkaError) as error:
                log.warning("it was not seen whether the topics have changed: %s", error)

    def look(self) -> None:
        """Look once."""
        offsets, self.changed = offsets_and_changed(self.settings, self.contracts)
        self.load.saw(time.monotonic(), {topic: sum(log.ends.values()) for topic, log in offsets.items()})
