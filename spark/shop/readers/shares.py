"""The demonstration of share groups: two workers on one partition, release, rejection, and redelivery when a worker dies."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shop.readers.children import Children
from shop.readers.share import LOCK_SECONDS, prepare_group
from shop.readers.topics import own_topic, send

if TYPE_CHECKING:
    from lockstep.settings import Settings

TASKS = ["plain"] * 10 + ["again", "poison"] + ["plain"] * 10 + ["hang"] + ["plain"] * 10


@dataclass(frozen=True)
class DemoResult:
    """What was seen.

    Args:
        done: by task, how often it was accepted.
        shared: by worker, how many tasks of the one partition it was handed.
        deliveries: by kind of task, how often its record was handed out.
        hung, taken_over: the worker that hung and was killed, and the one that did its task.
        seconds: from the kill to the redelivery.
    """

    done: dict[int, int]
    shared: dict[str, int]
    deliveries: dict[str, int]
    hung: str
    taken_over: str
    seconds: float


def demonstrate(settings: "Settings", say: Callable[[str], None]) -> DemoResult:
    """Run it on a topic and a group of its own, in 10 to 30 seconds.

    Raises:
        DemoFailed: something did not come in its time.
    """
    with own_topic(settings, 1) as topic, Children("shop.readers.share") as workers:
        prepare_group(settings, topic)
        for name in ("wanda", "will"):
            workers.start(name, topic, topic, name)
        send(settings, topic, 1, tasks(), one_by_one=True)
        workers.until(lambda: bool(workers.of("hangs")), "a worker hangs")
        hung = str(workers.of("hangs")[0]["worker"])
        rest = len(TASKS) - 2
        workers.until(lambda: len(workers.of("accept")) == rest, "the other worker does all but the hanging task")
        workers.kill(hung)
        killed_at = time.monotonic()
        workers.until(
            lambda: bool(workers.of("accept", task="hang")), "the task of the dead worker is handed out again"
        )
        seconds = time.monotonic() - killed_at
        told = [line for line in workers.told if "n" in line]
    shown = DemoResult(
        done=dict(Counter(line["n"] for line in told if line["event"] == "accept")),
        shared=dict(Counter(line["worker"] for line in told)),
        deliveries={kind: max(line["deliveries"] for line in told if line["task"] == kind) for kind in TASKS},
        hung=hung,
        taken_over=next(line["worker"] for line in told if (line["event"], line["task"]) == ("accept", "hang")),
        seconds=seconds,
    )
    for sentence in sentences(shown):
        say(sentence)
    return shown


def tasks() -> Iterator[dict[str, Any]]:
    """The tasks, numbered through, of a user who is the partition's only one."""
    for n, task in enumerate(TASKS):
        yield {"user_id": 0, "n": n, "task": task}


def sentences(shown: DemoResult) -> Iterator[str]:
    """What was seen, in words."""
    yield f"One partition, two workers: {shown.shared} tasks were handed out. A consumer group would leave one of them idle."
    yield f"Handed out so often: {shown.deliveries}. `again` was released once; `poison` was rejected, and is gone for good."
    when = f"{shown.seconds:.1f} s later (its lock: {LOCK_SECONDS} s)"
    yield f"{shown.hung} hung on a task and was killed; {shown.taken_over} got the task {when}."
    yield f"{len(shown.done)} of {len(TASKS)} tasks are done, each {max(shown.done.values())} time; the other one is poison."
