"""How often live jobs begin a micro-batch: all of them together take a share of the cores, also where many records arrive."""

from collections.abc import Mapping
from dataclasses import dataclass

# So many records a second for each core are a high load, and so many are none any more: a load between them changes nothing.
HIGH, LOW = 250.0, 125.0
# A query is started again for another interval, which takes seconds. So a load counts if it lasts, and not while a history is
# sent at once.
LASTING_SECONDS = 180.0


def seconds_between_batches(jobs: int, cores: int, beside_keyed: bool = False, is_high: bool = False) -> float:
    """How often a live job begins a micro-batch. Pure.

    A small one takes half a second of a core. So all of them take about a quarter of the cores, and the batch layer has the rest.

    Args:
        jobs: how many run.
        beside_keyed: the job has views over windows, and another one has keyed views. A micro-batch of those takes longer, and
            their rows wait for it too. So that all views are about as fresh, the others wait half as long again.
        is_high: many records arrive. Half as many micro-batches leave more of the cores to their rows.
    """
    usual = max(1.0, (3 if beside_keyed else 2) * jobs / cores)
    return 2 * usual if is_high else usual


@dataclass
class Load:
    """Whether many records arrive, for a time that lasts.

    Args:
        cores: those on which jobs run.
        is_high: the answer; None: it is not known yet.
    """

    cores: int
    is_high: bool | None = None
    _before: tuple[float, Mapping[str, int]] | None = None
    _now: bool | None = None
    _since: float = 0.0

    def saw(self, now: float, ends: Mapping[str, int]) -> None:
        """Take note of how many records the topics have had.

        Args:
            now: on the monotonic clock.
            ends: by topic, the sum of the next offsets of its partitions.
        """
        if self._before is not None:
            then, before = self._before
            arrived = sum(max(end - before[topic], 0) for topic, end in ends.items() if topic in before)
            is_high = arrived / (now - then) / self.cores > (LOW if self.is_high else HIGH)
            if is_high != self._now:
                self._now, self._since = is_high, then
            if now - self._since >= LASTING_SECONDS:
                self.is_high = is_high
        self._before = now, ends
