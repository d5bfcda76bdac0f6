"""The settings: read from ``LOCKSTEP_*`` variables, ``.env``, the generated secrets and the project.

Every address, port, path and limit is here; no other module reads the environment for them.
"""

import getpass
import json
import os
import re
import tomllib
from functools import cached_property
from pathlib import Path
from typing import Any, Self
from urllib.parse import quote, unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, SecretStr, field_validator, model_validator
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    PyprojectTomlConfigSettingsSource,
    SettingsConfigDict,
)

LOOPBACK = "127.0.0.1"
# In names of databases and schemas, and in paths: PostgreSQL's names have at most 63 bytes.
_ENVIRONMENT = re.compile(r"[a-z][a-z0-9_]{0,29}")


def _nearest_project() -> Path:
    """The project of ``LOCKSTEP_PROJECT``, else of the working directory, else the checkout that this file is in.

    As dbt does, parent directories are searched too. Without any project, it is the working directory.
    """
    if named := os.environ.get("LOCKSTEP_PROJECT"):
        return Path(named).expanduser().absolute()
    here = Path.cwd()
    for directory in (here, *here.parents, *Path(__file__).resolve().parents):
        file = directory / "pyproject.toml"
        if file.is_file() and "lockstep" in tomllib.loads(file.read_text(encoding="utf-8")).get("tool", {}):
            return directory
    return here


# Below production's lake.
_ENVIRONMENTS = "/_environments"


def environment_name(name: str) -> str:
    """The name of an environment, or an empty one.

    Raises:
        ValueError: it cannot be a part of the names of databases, schemas and directories.
    """
    if name and not _ENVIRONMENT.fullmatch(name):
        raise ValueError(
            f"{name!r} is no name of an environment: it begins with a small letter, and goes on with at most 29 small letters, "
            "digits and underscores"
        )
    return name


class Notifier(BaseModel):
    """One of Airflow's notifiers: its ``class``, and its arguments."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: str = Field("", alias="class")

    @property
    def arguments(self) -> dict[str, Any]:
        """The arguments of the class."""
        return dict(self.model_extra or {})


class Database(BaseModel):
    """A source database beside the one that has the project's name. Where it names no server, it is on the platform's own.

    Args:
        name: by which contracts name it, and the prefix of its topics.
        database: what its server calls it, if not by this name.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    database: str = ""
    host: str = ""
    port: int = 5432
    user: str = ""

    @field_validator("name")
    @classmethod
    def _is_a_name(cls, name: str) -> str:
        if not _ENVIRONMENT.fullmatch(name) or name in ("airflow", "postgres"):
            raise ValueError(
                f"{name!r} is no name of a source database: it begins with a small letter, and goes on with at most 29 small "
                "letters, digits and underscores, and is not airflow or postgres"
            )
        return name


class Settings(BaseSettings):
    """Where the platform's parts are, and how much they may use.

    Durations are in seconds. Paths become absolute. Secrets are never printed.
    """

    model_config = SettingsConfigDict(
        env_prefix="LOCKSTEP_", extra="ignore", frozen=True, pyproject_toml_table_header=("tool", "lockstep")
    )

    project: Path = Field(default_factory=_nearest_project, description="contracts, views, suites and dbt models")
    package: str = Field("", description="the project's Python package below spark/; also its source database's name")
    home: Path = Field(Path(), description="data, logs and run files of the stack; default <project>/.lockstep")
    cache: Path = Field(Path("~/.cache/lockstep"), description="downloaded jars, shared by all checkouts")
    ivy_settings: Path | None = Field(None, description="an ivysettings.xml that names a mirror")

    env: str = Field("", description="the environment that is meant, beside production; default: production itself")
    lake: str = Field(
        "", description="path or URI of production's lake; default <home>/lake. An environment's is below it"
    )
    kafka: str = Field("", description="bootstrap servers; default the embedded broker")
    kafka_config: Path | None = Field(
        None, description="Kafka client .properties (SASL, TLS), as the Java clients read it"
    )
    spark_remote: str = Field(
        "", description="any Spark Connect server, sc://host:port, also with /;use_ssl=true; default the embedded one"
    )
    connect_url: str = Field("", description="Kafka Connect's REST address; default the embedded one")
    airflow_url: str = Field("", description="where Airflow's API is reached; default the embedded one")
    listen: str = Field(LOOPBACK, description="where Spark, Connect and Airflow listen; 0.0.0.0 in a container")
    postgres_host: str = LOOPBACK
    postgres_user: str = "lockstep"
    databases: tuple[Database, ...] = Field(
        (), description="source databases beside the one that has the package's name"
    )

    postgres_port: int = 5432
    kafka_port: int = 9092
    kafka_controller_port: int = 9093
    connect_port: int = 8083
    spark_port: int = 15002
    spark_ui_port: int = 4040
    spark_master_ui_port: int = 8090
    spark_worker_ui_port: int = 8091
    airflow_port: int = 8080
    metrics_port: int = 9464
    history_port: int = 18080
    thrift_port: int = 10000
    thrift_connect_port: int = 15003

    spark_master: str = Field(
        "",
        description="where jobs run: local[n], spark://host:port or another; default local, with six more tasks at a time "
        "than cores",
    )
    spark_config: Path | None = Field(
        None, description="Spark properties of the embedded server, as in spark-defaults.conf; they win over Lockstep's"
    )
    event_log: bool = Field(
        False,
        description="keep the event log of the embedded server in <lake>/_events, for `lockstep up spark-history`",
    )
    spark_memory: str = "1400m"
    spark_executor_memory: str = Field("1g", description="of each executor, and what a worker offers")
    thrift_memory: str = Field("1g", description="of the Thrift server, which starts on demand")
    kafka_memory: str = "256m"
    connect_memory: str = "512m"

    views: str = Field("all", description="the views that run, comma-separated, or: all")
    dbt_schema: str = Field(
        "", description="the schema of your own dbt models, for all targets but prod; default: dbt_<your user>"
    )
    dbt_sample_days: int = Field(3, ge=0, description="how many days your own dbt models read, for target dev; 0: all")
    max_offsets_per_run: int = Field(500_000, gt=0, description="per topic and run: a large backlog takes several runs")
    max_offsets_per_trigger: int = Field(10_000, gt=0, description="per topic and micro-batch of live state machines")
    cores: int = Field(0, ge=0, description="of the machines on which Spark's jobs run; default: those of this one")
    state_partitions: int = Field(
        0, ge=0, description="of the jobs that keyed views share, fixed with a job's first micro-batch; default: cores"
    )
    heartbeat_seconds: int = Field(
        2,
        ge=0,
        description="an event partition without a record for so long gets a heartbeat, while others have some; 0: never",
    )
    retain_hours: int = Field(
        168, ge=24, description="how long VACUUM keeps replaced files, for readers of old versions and undo"
    )

    log_hours: int = Field(
        0,
        ge=0,
        description="how long a table's log keeps its commits, before only ops.ledger has them; default: a day longer than "
        "retain_hours",
    )

    max_lag_seconds: int = Field(
        600,
        gt=0,
        description="a record that is older, and that a layer has not read, is a problem of `lockstep status`",
    )
    airflow_hours: int = Field(
        720, ge=168, description="how long Airflow's database keeps runs, and ops.* what they found"
    )

    notifiers: tuple[Notifier, ...] = Field((), description="who is told of problems, by which of Airflow's notifiers")

    schema_registry_url: str = Field(
        "", description="a schema registry that speaks Confluent's API, for streams in Confluent's wire format"
    )
    schema_registry_user: str = ""

    webhook_url: str = Field("", description="where alerts are posted to")
    mail_server: str = Field("", description="the SMTP server that takes alerts, as host:port")
    mail_from: str = "lockstep@localhost"
    mail_to: str = Field("", description="who reads the alerts; several are separated by commas")
    mail_user: str = Field("", description="with a user, the server is asked for STARTTLS first")

    postgres_password: SecretStr = SecretStr("")
    database_passwords: SecretStr = Field(
        SecretStr(""),
        description='of the other source databases, by name: {"crm": "…"}; default: that of postgres_user',
    )
    airflow_password: SecretStr = SecretStr("")
    airflow_fernet_key: SecretStr = SecretStr("")
    airflow_jwt_secret: SecretStr = SecretStr("")
    schema_registry_password: SecretStr = SecretStr("")
    webhook_token: SecretStr = Field(SecretStr(""), description="the webhook's bearer token")
    mail_password: SecretStr = SecretStr("")
    spark_token: SecretStr = Field(SecretStr(""), description="the bearer token of another Spark Connect server")
    token_key: SecretStr = Field(SecretStr(""), description="key of the tokens that stand for personal values")

    @model_validator(mode="before")
    @classmethod
    def _absolute(cls, values: dict[str, object]) -> dict[str, object]:
        for name in ("project", "home", "cache", "ivy_settings", "kafka_config", "spark_config"):
            if values.get(name):
                values[name] = Path(str(values[name])).expanduser().absolute()
        return values

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments come first, then variables, ``.env`` and secrets, and last the project's ``[tool.lockstep]``."""
        given = init_settings.init_kwargs if isinstance(init_settings, InitSettingsSource) else {}
        file = Path(given.get("project") or _nearest_project()) / "pyproject.toml"
        return init_settings, env_settings, dotenv_settings, PyprojectTomlConfigSettingsSource(settings_cls, file)

    @field_validator("env")
    @classmethod
    def _is_a_name(cls, env: str) -> str:
        return environment_name(env)

    @model_validator(mode="after")
    def _defaults(self) -> Self:
        home = self.home if self.home != Path() else self.project / ".lockstep"
        cores = self.cores or os.cpu_count() or 1
        lake = _without_scheme(self.lake) or str(home / "lake")
        derived = {
            "home": home,
            "cache": self.cache.expanduser(),
            "lake": f"{lake.rstrip('/')}{self._below_production}",
            "kafka": self.kafka or f"{LOOPBACK}:{self.kafka_port}",
            "cores": cores,
            # Reads of a few records wait for Kafka more than they work.
            "spark_master": self.spark_master or f"local[{cores + 6}]",
            "state_partitions": self.state_partitions or cores,
            "log_hours": self.log_hours or self.retain_hours + 24,
            "spark_remote": self.spark_remote or f"sc://{LOOPBACK}:{self.spark_port}",
            "dbt_schema": self.dbt_schema or f"dbt_{re.sub('[^a-z0-9]+', '_', getpass.getuser().lower())}",
            "connect_url": (self.connect_url or f"http://{LOOPBACK}:{self.connect_port}").rstrip("/"),
            "airflow_url": (self.airflow_url or f"http://{LOOPBACK}:{self.airflow_port}").rstrip("/"),
        }
        for name, value in derived.items():
            object.__setattr__(self, name, value)
        if self.log_hours <= self.retain_hours:
            raise ValueError(
                f"LOCKSTEP_LOG_HOURS ({self.log_hours}) must be more than LOCKSTEP_RETAIN_HOURS ({self.retain_hours}): files are "
                "kept for readers of old versions, which the log must know"
            )
        if self.package == self.control_database:
            raise ValueError(
                f"the environment {self.env} would have the database {self.package}, which is the source: choose another name"
            )
        return self

    @model_validator(mode="after")
    def _databases_differ(self) -> Self:
        names = [*(source.name for source in self.databases), self.package, self.control_database]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"two databases have the name {twice[0]}: give one of [[tool.lockstep.databases]] another name"
            )
        if not _are_passwords(self.database_passwords.get_secret_value()):
            raise ValueError(
                'LOCKSTEP_DATABASE_PASSWORDS is no JSON object of names and passwords, such as {"crm": "…"}'
            )
        return self

    @field_validator("spark_remote")
    @classmethod
    def _without_token(cls, remote: str) -> str:
        if "token=" in remote:
            raise ValueError(
                "LOCKSTEP_SPARK_REMOTE would be printed with its token; give the token as LOCKSTEP_SPARK_TOKEN"
            )
        return remote.rstrip("/")

    @property
    def background_threads(self) -> int:
        """How many threads may work on what comes after the gates: half of the cores. Live queries and refine have the others."""
        return max(1, self.cores // 2)

    @property
    def schema_prefix(self) -> str:
        """What comes before the layer in the names of Spark's catalog, such as ``dev_`` in ``dev_gold.orders``."""
        return f"{self.env}_" if self.env else ""

    @property
    def control_database(self) -> str:
        """The name of the control database."""
        return f"lockstep_{self.env}" if self.env else "lockstep"

    @property
    def production(self) -> "Settings":
        """The settings without the environment."""
        return self.model_copy(update={"env": "", "lake": self.lake.removesuffix(self._below_production)})

    @property
    def environments(self) -> str:
        """Where the lakes of environments are: below production's, in the same storage, under the same server's lease."""
        return f"{self.production.lake.rstrip('/')}{_ENVIRONMENTS}"

    @property
    def _below_production(self) -> str:
        return f"{_ENVIRONMENTS}/{self.env}" if self.env else ""

    @cached_property
    def secrets_file(self) -> Path:
        """The generated secrets (``KEY=value``, mode 0600)."""
        return self.home / "secrets.env"

    @property
    def sources(self) -> tuple[str, ...]:
        """The names of the source databases: first the one that has the name of the project's package."""
        return (self.package, *(source.name for source in self.databases))

    def database(self, name: str) -> Database:
        """Where a database is, and who logs in there: a source, ``control_database`` or ``airflow`` (metadata)."""
        here = {"host": self.postgres_host, "port": self.postgres_port}
        own = next((source for source in self.databases if source.name == name), Database.model_construct(name=name))
        given = {"database": own.database or name, "user": own.user or self.postgres_user, **({} if own.host else here)}
        return own.model_copy(update=given)

    def password(self, database: str) -> str:
        """The password of who logs in to a database."""
        own: dict[str, str] = json.loads(self.database_passwords.get_secret_value() or "{}")
        return own.get(database, self.postgres_password.get_secret_value())

    def dsn(self, database: str) -> str:
        """A libpq connection URI of a database, by the name that :meth:`database` takes."""
        at = self.database(database)
        user, password, name = (quote(part, safe="") for part in (at.user, self.password(database), at.database))
        return f"postgresql://{user}:{password}@{at.host}:{at.port}/{name}"


def _are_passwords(text: str) -> bool:
    try:
        found = json.loads(text or "{}")
    except ValueError:
        return False
    return isinstance(found, dict) and all(isinstance(value, str) for value in found.values())


def _without_scheme(lake: str) -> str:
    """A lake on this disk as a path: pyarrow and Hadoop do not agree on how a ``file:`` URI writes a space."""
    address = urlsplit(lake)
    return unquote(address.path) if address.scheme == "file" else lake


def load() -> Settings:
    """Read the settings: variables, then the project's ``.env``, then the generated secrets of its home."""
    project = _nearest_project()
    env_file = project / ".env"
    home = Settings(project=project, _env_file=env_file).home  # type: ignore[call-arg]
    return Settings(project=project, _env_file=(home / "secrets.env", env_file))  # type: ignore[call-arg]
