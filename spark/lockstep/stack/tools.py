"""The tools that people know, with the commands and variables that point them at this stack."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from lockstep.marts import by_hand, dbt_project
from lockstep.session import remote
from lockstep.settings import Settings
from lockstep.stack import broker, jars, postgres
from lockstep.stack.airflow_services import configuration
from lockstep.stack.errors import StackError
from lockstep.stack.java import SPARK_OPENS, find_java
from lockstep.stack.services import environment
from lockstep.stack.spark_server import LOGGING, network

# Not the scripts of these tools: an environment may lack them, or have those of another place. Python warns that it runs a module
# which is imported already.
_PYTHON = (sys.executable, "-P", "-W", "ignore::RuntimeWarning", "-m")
# Kafka's tools, by the names of their scripts (kafka-topics.sh and so on).
KAFKA = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "console-producer": "org.apache.kafka.tools.ConsoleProducer",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "configs": "kafka.admin.ConfigCommand",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
    "acls": "org.apache.kafka.tools.AclCommand",
}

_BEELINE = "org.apache.hive.beeline.BeeLine"
_DRIVER = "org.apache.spark.sql.connect.client.jdbc.SparkConnectDriver"


@dataclass(frozen=True)
class Tool:
    """A command, and the variables that are added to the caller's. Secrets are in the variables alone."""

    argv: list[str]
    env: Mapping[str, str]


def airflow(settings: Settings, arguments: Sequence[str]) -> Tool:
    """Airflow's own command line."""
    return Tool([*_PYTHON, "airflow", *arguments], environment(settings) | configuration(settings))


def _dbt(settings: Settings) -> dict[str, str]:
    # What is read, and where artefacts go, depends on the target: `lockstep dbt` knows it, a shell does not.
    return dbt_project.variables(settings) | by_hand.as_variables(dbt_project.locations(settings))


def kafka(settings: Settings, arguments: Sequence[str]) -> Tool:
    """One of Kafka's tools, such as ``topics --list``.

    Raises:
        StackError: there is no such tool.
    """
    name = arguments[0] if arguments else ""
    if name not in KAFKA:
        raise StackError(f"There is no tool {name!r} of Kafka.", f"name one of: {', '.join(KAFKA)}.")
    given = ["--bootstrap-server", settings.kafka]
    if settings.kafka_config:
        given += ["--command-config", str(settings.kafka_config)]
    return Tool([*broker.tool(settings), KAFKA[name], *given, *arguments[1:]], {})


def spark_sql(settings: Settings, arguments: Sequence[str]) -> Tool:
    """Spark's SQL shell, BeeLine, on the lake. `-e` runs a statement, `-f` a file; each ends with a semicolon.

    Spark's script `spark-sql` starts a server of its own: that of Spark 4.1 cannot use one that runs.
    """
    own = jars.spark_home() / "jars"
    # The client first: other jars have classes of the same names, for the server.
    classpath = [*map(str, sorted((own / "connect-repl").glob("spark-connect-client-*.jar"))), str(own / "*")]
    java = [
        str(find_java().executable),
        "-Xmx256m",
        *SPARK_OPENS,
        "-Duser.timezone=UTC",
        LOGGING,
        "-cp",
        ":".join(classpath),
    ]
    # The driver has no transactions. It takes the token, if there is one, from the variable.
    server = ["-d", _DRIVER, "-u", f"jdbc:{settings.spark_remote}", "--isolation=TRANSACTION_NONE"]
    return Tool(
        [*java, _BEELINE, *server, *arguments], network(settings) | {"SPARK_REMOTE": remote(settings, "spark-sql")}
    )


def psql(settings: Settings, arguments: Sequence[str]) -> Tool:
    """PostgreSQL's psql, on the control database if no other is named."""
    return Tool([str(postgres.binaries() / "psql"), *arguments], _postgres(settings))


def _postgres(settings: Settings) -> dict[str, str]:
    return {
        "PGHOST": settings.postgres_host,
        "PGPORT": str(settings.postgres_port),
        "PGUSER": settings.postgres_user,
        "PGPASSWORD": settings.postgres_password.get_secret_value(),
        "PGDATABASE": settings.control_database,
    }


def variables(settings: Settings) -> dict[str, str]:
    """The variables with which these tools find the stack from a shell of one's own. They contain secrets."""
    tools = configuration(settings) | environment(settings) | _dbt(settings) | _postgres(settings)
    path = {"PATH": f"{Path(sys.executable).parent}:{postgres.binaries()}"}
    return tools | path
