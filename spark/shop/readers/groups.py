"""The demonstration of consumer groups: fan-out, load balancing, and take-over from the last committed offset."""

import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from shop.readers.child_processes import ChildProcesses
from shop.readers.topics import own_topic, send

if TYPE_CHECKING:
    from lockstep.settings import Settings

# Two members share three partitions unevenly, which shows that a partition has one reader.
PARTITIONS = 3
USERS = 9
# Not a divisor of what a member handles in a round, so that a killed member leaves uncommitted records.
COMMIT_EVERY = 7


@dataclass(frozen=True)
class DemoResult:
    """What the demonstration has shown.

    Args:
        sent: events in each of the three rounds.
        fan_out: by group, the events of the first round that it handled.
        balanced: by member, the partitions whose events of the second round it handled.
        repeated: events of the second round that the member that took over handled again.
        lost: events that no member of the group has handled.
        resumed: by partition of the dead member, the offset at which the other went on, and the last one committed.
    """

    sent: int
    fan_out: dict[str, int]
    balanced: dict[str, list[int]]
    repeated: int
    lost: int
    resumed: dict[int, tuple[int, int]]


def demonstrate(settings: "Settings", print_line: Callable[[str], None]) -> DemoResult:
    """Run it on a topic and groups of its own, in about 20 seconds.

    Raises:
        DemonstrationFailed: a step did not end in time.
    """
    tag = uuid.uuid4().hex[:8]
    billing, dashboard = f"billing-{tag}", f"dashboard-{tag}"
    with own_topic(settings, PARTITIONS) as topic, ChildProcesses("shop.readers.group") as members:

        def start(name: str, group: str) -> None:
            members.start(name, group, topic, name, str(COMMIT_EVERY))

        sent = send(settings, topic, PARTITIONS, events(1))
        start("anna", billing)
        start("dora", dashboard)
        members.wait_until(
            lambda: all(_handled(members, m, 1) == _all(1) for m in ("anna", "dora")), "both groups have all"
        )
        fan_out = {m: len(_handled(members, m, 1)) for m in ("anna", "dora")}
        print_line(f"Fan-out: {sent} events; {fan_out} handled: each group has all of them.")

        start("bert", billing)
        members.wait_until(lambda: bool(members.reports_of("assigned", member="bert")), "bert has partitions")
        send(settings, topic, PARTITIONS, events(2))
        members.wait_until(
            lambda: _handled(members, "anna", 2) | _handled(members, "bert", 2) == _all(2), "round 2 is handled"
        )
        balanced = {m: sorted({e["partition"] for e in _round(members, m, 2)}) for m in ("anna", "bert")}
        print_line(
            f"Load balancing: bert has joined anna; partitions by member: {balanced}; each event went to one of them."
        )

        members.kill("anna")
        committed = _committed(members, "anna")
        send(settings, topic, PARTITIONS, events(3))
        members.wait_until(lambda: _handled(members, "bert", 3) == _all(3), "bert has all of round 3")
        resumed = {p: (_first(members, "bert", p), committed[p]) for p in balanced["anna"]}
        repeated = len(_handled(members, "anna", 2) & _handled(members, "bert", 2))
        print_line(f"Take-over: anna was killed; bert went on at (offset, anna's last commit) by partition: {resumed};")
        print_line(f"  {repeated} events that anna had handled and not committed were handled again.")
        lost = sum(len(_all(n) - _handled(members, "anna", n) - _handled(members, "bert", n)) for n in (1, 2, 3))
    return DemoResult(sent, fan_out, balanced, repeated, lost, resumed)


def events(number: int) -> Iterator[dict[str, Any]]:
    """The events of a round: five of each user, with consecutive numbers."""
    for n in range(USERS * 5):
        yield {"user_id": n % USERS, "round": number, "n": number * 1000 + n}


def _round(members: ChildProcesses, member: str, number: int) -> list[dict[str, Any]]:
    return [e for e in members.reports_of("handled", member=member) if e["value"]["round"] == number]


def _handled(members: ChildProcesses, member: str, number: int) -> set[int]:
    return {e["value"]["n"] for e in _round(members, member, number)}


def _all(number: int) -> set[int]:
    return {e["n"] for e in events(number)}


def _committed(members: ChildProcesses, member: str) -> dict[int, int]:
    last: dict[int, int] = {}
    for report in members.reports_of("committed", member=member):
        last |= {int(partition): offset for partition, offset in report["offsets"].items()}
    return last


def _first(members: ChildProcesses, member: str, partition: int) -> int:
    return min(int(e["offset"]) for e in members.reports_of("handled", member=member, partition=partition))
