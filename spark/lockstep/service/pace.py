"""How often the live jobs begin a micro-batch: the more seldom, the more work the machine has."""

# So long a record may wait on full cores until the micro-batch begins that takes it.
LONGEST_SECONDS = 10.0


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
