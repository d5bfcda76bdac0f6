"""How often the live jobs begin a micro-batch: the more seldom, the more work the machine has."""

# So long a record may wait on full cores until the micro-batch begins that takes it.
LONGEST_SECONDS = 10.0
# To start a query again takes up to four seconds, and the load of one task of a DAG is over before that has paid.
LASTING_SECONDS = 60.0


def seconds_between_batches(jobs: int, cores: int) -> float:
    """How often each of the live jobs begins a micro-batch while the cores are not full. Pure.

    A small one takes half a second of a core. So all of them take about a quarter of the cores, and the batch layer has the rest.
    """
    return max(1.0, 2 * jobs / cores)


def with_the_load(usual: float, now: float, slowest: float) -> float:
    """How often they begin one when the slowest job takes ``slowest`` seconds for one of its own. Pure.

    Where it takes longer than usual, the cores are full. A micro-batch of few rows costs nearly as much as one of many, so the
    other jobs begin theirs as often as the slowest one ends its own: what they save is for that one, and for batch. A query must
    be started again for another interval, so there is another one only where that is half as long, or twice as long.

    Args:
        now: the seconds between two that they have.
    """
    wanted = min(max(usual, slowest), max(usual, LONGEST_SECONDS))
    return now if now / 2 < wanted < now * 2 else wanted


class Interval:
    """The seconds between two micro-batches of the live jobs: they follow a load that lasts."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self._right_at = 0.0

    def follow(self, usual: float, slowest: float, now: float) -> float:
        """What it is from now on (monotonic clock): another one where that was right for a minute, see :func:`with_the_load`."""
        wanted = with_the_load(usual, self.seconds or usual, slowest)
        if wanted == self.seconds:
            self._right_at = now
        elif not self.seconds or now - self._right_at >= LASTING_SECONDS:
            self.seconds, self._right_at = wanted, now
        return self.seconds
