"""What may be asked of an erasure: a person, or ranges of offsets, signed. The command and the DAG's form ask in the same way."""

import json
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lockstep import lake
from lockstep.contracts import CONTRACTS, Contract
from lockstep.definition.tables import bronze_of
from lockstep.erase import find
from lockstep.erase.fields import MOST_RECORDS, RANGE
from lockstep.erase.needles import as_word
from lockstep.erase.scope import Asked, of_person
from lockstep.errors import LockstepError

if TYPE_CHECKING:
    from lockstep.settings import Settings


class ErasureRefused(LockstepError):
    """What was asked for cannot be erased as it was asked for. Nothing was changed."""


def asked_for(settings: "Settings", subject: str, ranges: Sequence[str]) -> Asked:
    """What is to be erased.

    Args:
        subject: what names a person; empty: the ranges name the records.
        ranges: each ``TOPIC:PARTITION:FROM-TO``, the last offset left out.

    Raises:
        ErasureRefused: both or none of them are given, one is malformed or unknown, or no contract names a subject.
    """
    if bool(subject) == bool(ranges):
        raise ErasureRefused("Name either who is to be forgotten as subject, or what is to be erased as range.")
    return of_person(_of_persons(), subject) if subject else _records(settings, parse_ranges(ranges))


def check_signature(subject: str, by: str, reason: str) -> None:
    """Refuse what cannot be kept for ever as the record of an erasure.

    Raises:
        ErasureRefused: nobody signed, there is no reason, or it names who is to be forgotten.
    """
    if not (by.strip() and reason.strip()):
        raise ErasureRefused("An erasure is signed: it needs who asks for it, and a reason.")
    if subject and re.search(as_word(subject), reason):
        raise ErasureRefused("The reason is kept for ever, and names who is to be forgotten: write a ticket's number.")


def check_environments(settings: "Settings") -> None:
    """Refuse to erase while an environment has a sample of production's records: an erasure does not reach it.

    Raises:
        ErasureRefused: there is one. The message says how it goes.
    """
    if there := lake.directories(settings.environments):
        remove = ", ".join(f"`lockstep --env {name} remove`" for name in there)
        raise ErasureRefused(
            f"An environment has a sample of production's records, which no erasure reaches: {remove}, and apply it again "
            "afterwards."
        )


def parse_ranges(ranges: Sequence[str]) -> dict[str, dict[int, tuple[int, ...]]]:
    """By topic and partition, the offsets of ``TOPIC:PARTITION:FROM-TO``. Pure."""
    found: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for text in ranges:
        match = re.fullmatch(RANGE, text)
        if match is None or int(match[3]) >= int(match[4]):
            raise ErasureRefused(f"{text!r} is no range: write TOPIC:PARTITION:FROM-TO, such as visits:0:120-125.")
        if int(match[4]) - int(match[3]) > MOST_RECORDS:
            raise ErasureRefused(f"{text} has more than {MOST_RECORDS:,} offsets: erase it in parts.")
        found[match[1]][int(match[2])] |= {*range(int(match[3]), int(match[4]))}
    return {topic: {p: tuple(sorted(of)) for p, of in by.items()} for topic, by in found.items()}


def _of_persons() -> list[Contract]:
    # Also those that have no table yet: what their topics have is taken into bronze, where it is found.
    found = [contract for contract in CONTRACTS.values() if contract.subject]
    if not found:
        raise ErasureRefused(
            "No contract names a subject, so nothing says whose a row is: add `subject=<column>` to the contracts that are "
            "about persons, or erase single records as range."
        )
    return found


def _records(settings: "Settings", asked: Mapping[str, Mapping[int, tuple[int, ...]]]) -> Asked:
    by_topic = {c.topic: c for c in CONTRACTS.values() if lake.exists(settings, bronze_of(c))}
    if unknown := sorted(asked.keys() - by_topic.keys()):
        raise ErasureRefused(
            f"No stream has records of the topic {', '.join(unknown)}: name one of {', '.join(sorted(by_topic))}."
        )

    def found(spark: Any, settings: "Settings") -> dict[str, find.Found]:
        every = {by_topic[t].name: find.of_offsets(spark, settings, by_topic[t], of) for t, of in asked.items()}
        return {name: of for name, of in every.items() if of.records}

    return Asked(json.dumps(asked, sort_keys=True), "", [by_topic[topic] for topic in asked], found)
