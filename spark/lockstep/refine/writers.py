"""The schemas that the records of a stream were written with, by the ids in Confluent's wire format.

Batch asks the registry before it parses, and keeps what it was told: a replay reads the same records by the same schemas, and
does not need the registry. A live query asks when it sees a new id, because its plan cannot be changed while it runs.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from pyspark.sql import functions as F

from lockstep.control import schemas
from lockstep.formats.confluent import HEADER, Writers, schema_ids
from lockstep.refine.decode import own
from lockstep.schema_registry import RegistryDown, registry_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from lockstep.contracts import Contract
    from lockstep.settings import Settings


def kept_writers(settings: "Settings", contract: "Contract") -> Writers:
    """The schemas that are kept. The registry, if there is one, is asked for others when a record names them."""
    if not contract.by_registry:
        return own(contract)
    known = schemas.kept(settings, contract.topic)
    # An id that was not known may be known now.
    found = {number: schema for number, schema in known.items() if schema}
    return replace(own(contract), known=found, registry=registry_of(settings))


def writers_of(
    settings: "Settings", contract: "Contract", values: "Iterable[bytes | None]", ask_again: bool = True
) -> Writers:
    """The schemas of these values. The registry is asked for those that are not kept yet.

    Args:
        ask_again: for the ids that it did not know. A run that is done again must take what the first one took.

    Raises:
        RegistryDown: it does not answer. Nothing was kept.
    """
    registry = registry_of(settings) if contract.by_registry else None
    if registry is None:
        return kept_writers(settings, contract)
    known = schemas.kept(settings, contract.topic)
    answers = {}
    for number in sorted(schema_ids(values)):
        if number not in known or (ask_again and known[number] is None):
            try:
                answers[number] = registry.schema(number)
            except RegistryDown as error:
                if number in known:
                    continue
                raise RegistryDown(f"{contract.topic} waits for the schema with id {number}: {error}") from error
    schemas.keep(settings, contract.topic, answers)
    return Writers(known | answers)


def headers(raw: "DataFrame", contract: "Contract") -> list[bytes]:
    """What the records of a stream in the wire format begin with, each once."""
    if not contract.by_registry:
        return []
    found = raw.select(F.substring("value", 1, HEADER).alias("header")).distinct().collect()
    return [bytes(row["header"]) for row in found if row["header"] is not None]
