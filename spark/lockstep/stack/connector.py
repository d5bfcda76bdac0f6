"""Debezium's connectors: one for each source database, with its name, which is the prefix of its topics too."""

from collections.abc import Iterable

import psycopg2

from lockstep.contracts.captured import slot_of
from lockstep.settings import Settings
from lockstep.stack import connect_api
from lockstep.stack.connector_config import (
    captured_tables,
    connector_config,
    is_of_another,
    new_tables,
    newest_lsn,
)
from lockstep.stack.errors import Unhealthy
from lockstep.stack.new_generation import begin_generation, current_generation, forget_position
from lockstep.stack.postgres import prepare_source
from lockstep.stack.source import ask_for_snapshot, has_slot, source_now, without_old_rows


def check(settings: Settings) -> str:
    """Check that each connector and its task run, and that the source is the database for which it was registered.

    Returns:
        What it found; also which tables have no ``REPLICA IDENTITY FULL``, and how they get it.
    """
    found = [_check(settings, name) for name in settings.sources if captured_tables(settings, name)]
    return ", ".join(found) or "no contract captures a table"


def _check(settings: Settings, name: str) -> str:
    if name not in connect_api.get(settings, ""):
        raise Unhealthy(f"Kafka Connect at {settings.connect_url} has no connector {name}; `lockstep up connect`")
    if _has_lost_its_slot(settings, name):
        raise Unhealthy(
            f"the source database {name} has lost the replication slot {slot_of(settings, name)}, and with it the changes that "
            "were not sent yet; `lockstep up connect` takes a new snapshot of the captured tables"
        )
    status = connect_api.get(settings, f"/{name}/status")
    states = [status["connector"], *status["tasks"]]
    idle = [state for state in states if state["state"] != "RUNNING"]
    if idle or not status["tasks"]:
        cause = "".join(state.get("trace", "").partition("\n")[0] for state in idle)
        names = ", ".join(state["state"] for state in states)
        raise Unhealthy(f"connector {name} is {names} {cause}".rstrip() + "; `lockstep up connect` restarts it")
    source, _ = source_now(settings, name)
    if is_of_another(connect_api.get(settings, f"/{name}/config"), source):
        raise Unhealthy(
            f"the source database {name} was restored or replaced: it is {source} now (system identifier/timeline); "
            "`lockstep up connect` takes a new snapshot of the captured tables"
        )
    poor = without_old_rows(settings, name, captured_tables(settings, name))
    return f"connector {name} runs" + (f". {advice(poor)}" if poor else "")


def register(settings: Settings) -> None:
    """Register the connector of each source database. One that has its configuration already is restarted where it has failed.

    A new generation begins where the source is another database than before, where it has lost what it had sent, or the slot that
    keeps what was not sent yet, and where a new generation was begun and not finished. Of a table that is captured from now on,
    Debezium reads the rows; of the others it goes on in the log. Without captured tables there is nothing to register: Debezium
    would take an empty list for all tables.
    """
    for database in settings.sources:
        if captured_tables(settings, database):
            with connect_api.answering():
                _register(settings, database)


def _register(settings: Settings, name: str) -> None:
    if name != settings.package:
        _prepare(settings, name)
    config, (source, lsn) = connect_api.registered(settings, name), source_now(settings, name)
    if config and (
        is_of_another(config, source)
        or _has_lost(settings, name, lsn)
        or _has_lost_its_slot(settings, name)
        or connect_api.state(settings, name) == "STOPPED"
    ):
        begin_generation(settings, name)
        return
    expected = connector_config(settings, name, current_generation(settings, name, config), source)
    if config and (tables := new_tables(config, expected)):
        # The request is in the WAL before Debezium goes on, and it goes on with the new tables: so it cannot miss it.
        connect_api.stop(settings, name)
        connect_api.call(settings, name, "PUT", "/config", expected)
        ask_for_snapshot(settings, name, tables)
        connect_api.call(settings, name, "PUT", "/resume")
    elif config != expected:
        connect_api.call(settings, name, "PUT", "/config", expected)
    else:
        connect_api.call(settings, name, "POST", "/restart?includeTasks=true&onlyFailed=true")


def _prepare(settings: Settings, name: str) -> None:
    try:
        prepare_source(settings, name)
    except psycopg2.Error as error:
        raise Unhealthy(f"the source database {name} cannot be prepared for change capture: {error}".strip()) from error


def remove(settings: Settings, name: str) -> None:
    """Remove the connector of a database without captured tables, and its slot, which would keep the source's log for ever.

    Raises:
        StackError, Unhealthy: Kafka Connect or the source refused a part; it can be called again.
    """
    connect_api.stop(settings, name)
    forget_position(settings, name)
    connect_api.call(settings, name, "DELETE", "")


def remove_unused(settings: Settings) -> None:
    """Remove the connectors of source databases of which no contract captures a table."""
    for name in settings.sources:
        if not captured_tables(settings, name) and connect_api.registered(settings, name):
            remove(settings, name)


def advice(tables: Iterable[str]) -> str:
    """What to do about tables that do not tell their old rows. Pure."""
    commands = "; ".join(f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in tables)
    return f"Views do not see that rows are deleted or move to another key until you run: {commands}"


def _has_lost(settings: Settings, name: str, lsn: int) -> bool:
    """Whether Debezium has seen an LSN that the source does not have yet."""
    return newest_lsn(connect_api.get(settings, f"/{name}/offsets")) > lsn


def _has_lost_its_slot(settings: Settings, name: str) -> bool:
    """Whether Debezium has sent changes, and the source does not keep those after them: Debezium refuses to go on then."""
    return not has_slot(settings, name, slot_of(settings, name)) and bool(
        newest_lsn(connect_api.get(settings, f"/{name}/offsets"))
    )
