"""The configuration of Debezium's connector, and what is read out of it. Pure, but for the template.

The LSNs of a database that was restored from a backup, or replaced by another one, are no continuation of those before. So every
change has the header ``lockstep-generation``. The configuration says which generation is current, and of which database it is.
"""

import json
from collections.abc import Mapping
from string import Template
from typing import Any

from lockstep.contracts.captured import captured, slot_of
from lockstep.definition.columns import FIRST_GENERATION
from lockstep.refine.parse import GENERATION
from lockstep.resources import resource
from lockstep.settings import Settings

_TEMPLATE = resource("infra") / "connect" / "source.json"
# Where the configuration has them. Connect keeps what it does not know.
_SOURCE, _NUMBER = "lockstep.source", "transforms.generation.value.literal"


def captured_tables(settings: Settings, database: str) -> list[str]:
    """The tables (``schema.name``) of a source database whose changes the project's contracts read, sorted."""
    return sorted(captured(settings, database))


def password_variable(settings: Settings, database: str) -> str:
    """The variable of the worker that has the password."""
    return f"LOCKSTEP_{'POSTGRES' if database == settings.package else f'DATABASE_{database.upper()}'}_PASSWORD"


def connector_config(
    settings: Settings, database: str, generation: int = FIRST_GENERATION, source: str = ""
) -> dict[str, str]:
    """A connector's configuration: ``infra/connect/source.json`` with the addresses and the tables of the contracts.

    Args:
        database: the name of the source database.
        generation: of the source, from now on.
        source: the database that it is of, as :func:`lockstep.stack.source.source_now` names it.
    """
    at = settings.database(database)
    values = {
        "postgres_host": at.host,
        "postgres_port": str(at.port),
        "postgres_user": at.user,
        "password": password_variable(settings, database),
        "name": at.database,
        "database": database,
        "slot": slot_of(settings, database),
        "tables": ",".join(captured_tables(settings, database)),
        "header": GENERATION,
        "generation": str(generation),
        "source": source,
    }
    template: dict[str, str] = json.loads(_TEMPLATE.read_text())
    return {name: Template(value).substitute(values) for name, value in template.items()}


def new_tables(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The tables (``schema.name``) that a connector captures with one configuration, and not with the one before. Pure."""
    return sorted(_tables(after) - _tables(before))


def _tables(config: Mapping[str, str]) -> set[str]:
    return {*filter(None, config.get("table.include.list", "").split(","))}


def generation_of(config: Mapping[str, str]) -> int:
    """The generation that a connector's configuration says. Pure."""
    return int(config.get(_NUMBER, FIRST_GENERATION))


def is_of_another(config: Mapping[str, str], source: str) -> bool:
    """Whether the connector was registered for another database. Pure; false where the configuration does not say."""
    return config.get(_SOURCE, source) != source


def newest_lsn(offsets: Mapping[str, Any]) -> int:
    """The newest LSN in the answer of Connect's ``/offsets``; 0 where there is none yet. Pure."""
    return max((entry["offset"].get("lsn") or 0 for entry in offsets.get("offsets", ())), default=0)
