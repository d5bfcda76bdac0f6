"""Each tool gets its command and its variables; a secret is in no command line."""

import shlex
from pathlib import Path

import pytest
from pydantic import SecretStr

from lockstep.settings import Settings
from lockstep.stack import tools
from lockstep.stack.errors import StackError

SECRET = "open sesame"


@pytest.fixture
def own(tmp_path: Path) -> Settings:
    return Settings(
        home=tmp_path,
        kafka="broker:9092",
        kafka_config=tmp_path / "kafka.properties",
        postgres_password=SecretStr(SECRET),
        spark_remote="sc://spark:15002/;use_ssl=true",
        spark_token=SecretStr(SECRET),
    )


def test_kafkas_tools_know_the_brokers_and_how_to_log_in(own: Settings) -> None:
    argv = tools.kafka(own, ["topics", "--list"]).argv
    at = argv.index("org.apache.kafka.tools.TopicCommand")
    config = str(own.kafka_config)
    assert argv[at + 1 :] == ["--bootstrap-server", "broker:9092", "--command-config", config, "--list"]


@pytest.mark.parametrize("arguments", [[], ["topicz"]])
def test_a_tool_that_kafka_does_not_have_is_refused_with_those_that_it_has(own: Settings, arguments: list[str]) -> None:
    with pytest.raises(StackError, match="There is no tool"):
        tools.kafka(own, arguments)


def test_no_command_line_has_a_secret(own: Settings) -> None:
    for tool in (tools.airflow, tools.psql, tools.spark_sql):
        made = tool(own, ["--version"])
        assert made.argv[-1] == "--version"
        assert SECRET not in " ".join(made.argv)
    assert tools.psql(own, []).env["PGPASSWORD"] == SECRET
    assert f";token={SECRET};" in tools.spark_sql(own, []).env["SPARK_REMOTE"]


def test_sparks_shell_knows_the_server(own: Settings) -> None:
    argv = tools.spark_sql(own, ["-e", "SELECT 1"]).argv
    assert argv[argv.index("-u") + 1] == "jdbc:sc://spark:15002/;use_ssl=true"
    assert argv[-2:] == ["-e", "SELECT 1"]
    assert "spark-connect-client-jdbc" in argv[argv.index("-cp") + 1].partition("*")[0], "the client comes first"


def test_the_variables_of_a_shell_name_every_tools_own(own: Settings) -> None:
    found = tools.variables(own)
    assert found.keys() >= {"LOCKSTEP_HOME", "AIRFLOW_HOME", "DBT_PROJECT_DIR", "SPARK_REMOTE", "PGHOST", "PATH"}
    assert shlex.split(shlex.quote(found["PGPASSWORD"])) == [SECRET]
