"""Look again and again whether the topics of live queries are still the ones that bronze has read.

Spark knows the offsets of its checkpoint, but neither topic ids nor leader epochs: it would go on in another log without a word.
"""

import logging
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kafka.errors import KafkaError

from lockstep.ingest.continuity import changed_logs
from lockstep.kafka_clients import KafkaUnavailable

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
    """

    settings: "Settings"
    contracts: Iterable["Contract"]
    changed: Mapping[str, "LockstepError"] = field(default_factory=dict)

    def run(self, stopping: threading.Event) -> None:
        """Look until ``stopping`` is set. A broker that does not answer is asked again."""
        while not stopping.wait(_SECONDS):
            try:
                self.look()
            except (KafkaUnavailable, KafkaError) as error:
                log.warning("it was not seen whether the topics have changed: %s", error)

    def look(self) -> None:
        """Look once."""
        self.changed = changed_logs(self.settings, self.contracts)
