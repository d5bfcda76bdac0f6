"""Debezium's connector, which has the name of the project's package, as the source database and the prefix of the topics have."""

from collections.abc import Iterable

from lockstep.settings import Settings
from lockstep.stack import connect_api
from lockstep.stack.connector_config import captured_tables, connector_config, is_of_another, new_tables, newest_lsn
from lockstep.stack.errors import Unhealthy
from lockstep.stack.new_generation import begin_generation, current_generation, forget_position
from lockstep.stack.source import ask_for_snapshot, source_now, without_old_rows


def check(settings: Settings) -> str:
    """Check that the connector and its task run, and that the source is the database for which it was registered.

    Returns:
        What it found; also which tables have no ``REPLICA IDENTITY FULL``, and how they get it.
    """
    if not captured_tables(settings):
        return "no contract captures a table"
    name = settings.package
    if name not in connect_api.get(settings, ""):
        raise Unhealthy(f"Kafka Connect at {settings.connect_url} has no connector {name}; `lockstep up connect`")
    status = connect_api.get(settings, f"/{name}/status")
    states = [status["connector"], *status["tasks"]]
    idle = [state for state in states if state["state"] != "RUNNING"]
    if idle or not status["tasks"]:
        cause = "".join(state.get("trace", "").partition("\n")[0] for state in idle)
        names = ", ".join(state["state"] for state in states)
        raise Unhealthy(f"connector {name} is {names} {cause}".rstrip() + "; `lockstep up connect` restarts it")
    source, _ = source_now(settings)
    if is_of_another(connect_api.get(settings, f"/{name}/config"), source):
        raise Unhealthy(
            f"the source database {name} was restored or replaced: it is {source} now (system identifier/timeline); "
            "`lockstep up connect` takes a new snapshot of the captured tables"
        )
    poor = without_old_rows(settings, captured_tables(settings))
    return f"connector {name} runs" + (f". {advice(poor)}" if poor else "")


def register(settings: Settings) -> None:
    """Register the connector. If it has this configuration already, restart it where it has failed.

    A new generation begins where the source is another database than before, or has lost what it had sent, or where a new
    generation was begun and not finished. Of a table that is captured from now on, Debezium reads the rows; of the others it goes
    on in the log. Without captured tables there is nothing to register: Debezium would take an empty list
    for all tables.
    """
    if captured_tables(settings):
        with connect_api.answering():
            _register(settings)


def _register(settings: Settings) -> None:
    config, (source, lsn) = connect_api.registered(settings), source_now(settings)
    if config and (
        is_of_another(config, source) or _has_lost(settings, lsn) or connect_api.state(settings) == "STOPPED"
    ):
        begin_generation(settings)
        return
    expected = connector_config(settings, current_generation(settings, config), source)
    if config and (tables := new_tables(config, expected)):
        # The request is in the WAL before Debezium goes on, and it goes on with the new tables: so it cannot miss it.
        connect_api.stop(settings)
        connect_api.call(settings, "PUT", "/config", expected)
        ask_for_snapshot(settings, tables)
        connect_api.call(settings, "PUT", "/resume")
    elif config != expected:
        connect_api.call(settings, "PUT", "/config", expected)
    else:
        connect_api.call(settings, "POST", "/restart?includeTasks=true&onlyFailed=true")


def remove(settings: Settings) -> None:
    """Remove the connector of a project without captured tables, and its slot, which would keep the source's log for ever.

    Raises:
        StackError, Unhealthy: Kafka Connect or the source refused a part; it can be called again.
    """
    connect_api.stop(settings)
    forget_position(settings)
    connect_api.call(settings, "DELETE", "")


def advice(tables: Iterable[str]) -> str:
    """What to do about tables that do not tell their old rows. Pure."""
    commands = "; ".join(f"ALTER TABLE {table} REPLICA IDENTITY FULL" for table in tables)
    return f"Views do not see that rows are deleted or move to another key until you run: {commands}"


def _has_lost(settings: Settings, lsn: int) -> bool:
    """Whether Debezium has seen an LSN that the source does not have yet."""
    return newest_lsn(connect_api.get(settings, f"/{settings.package}/offsets")) > lsn
