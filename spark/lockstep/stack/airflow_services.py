"""Airflow 3: its configuration as variables, its migration, its four processes, and their health checks."""

import hashlib
import hmac
import json
import os
import subprocess
import sys
from collections.abc import Callable
from datetime import datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path

from dotenv import dotenv_values
from psycopg2 import sql

from lockstep.airflow_api import USER, connected
from lockstep.orchestration import PARALLELISM, POOLS
from lockstep.resources import resource
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import net, postgres
from lockstep.stack.errors import StackError, Unhealthy
from lockstep.stack.services import Launch, Service, inherited, log_file, python_path

# On busy cores, Airflow and its tasks get the time of less than half a process: live views promise seconds, and batch minutes.
_NICE = 4
# The longest that the API server takes to open the API of the tasks: many times what it takes on a busy machine.
_OPENING_SECONDS = 180.0


def airflow_home(settings: Settings) -> Path:
    """``AIRFLOW_HOME``: the directory of the logs and of the login page's password file."""
    return settings.home / "airflow"


def configuration(settings: Settings) -> dict[str, str]:
    """Airflow's configuration as its own variables, with the secrets, and with the connections (``AIRFLOW_CONN_*``) and the
    receiver of lineage (``OPENLINEAGE*``) of the project's ``.env``. It is the same in every process.
    """
    jwt = settings.airflow_jwt_secret.get_secret_value()
    sections = {
        "CORE": {
            "EXECUTOR": "lockstep.airflow_executor.Executor",
            "PARALLELISM": str(PARALLELISM),
            "LOAD_EXAMPLES": "False",
            "PLUGINS_FOLDER": str(resource("infra") / "airflow" / "plugins"),
            "DAGS_ARE_PAUSED_AT_CREATION": "True",
            "DEFAULT_TIMEZONE": "utc",
            "FERNET_KEY": settings.airflow_fernet_key.get_secret_value(),
            "EXECUTION_API_SERVER_URL": f"{settings.airflow_url}/execution/",
            "AUTH_MANAGER": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
            "SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(_passwords(settings)),
        },
        "DATABASE": {
            "SQL_ALCHEMY_CONN": settings.dsn("airflow").replace("postgresql", "postgresql+psycopg2", 1),
            "LOAD_DEFAULT_CONNECTIONS": "False",
        },
        "API": {
            "HOST": settings.listen,
            "PORT": str(settings.airflow_port),
            # The address for a browser on this machine. Tasks use EXECUTION_API_SERVER_URL.
            "BASE_URL": f"http://{LOOPBACK}:{settings.airflow_port}",
            "WORKERS": "1",
            "SECRET_KEY": hmac.new(jwt.encode(), b"api", hashlib.sha256).hexdigest(),
        },
        "API_AUTH": {"JWT_SECRET": jwt},
        "SCHEDULER": {
            "SCHEDULER_HEARTBEAT_SEC": "2",
            "JOB_HEARTBEAT_SEC": "5",
            # The tasks of a killed scheduler end with it. The next scheduler looks for them this often, and not every 300 s.
            "ORPHANED_TASKS_CHECK_INTERVAL": "15",
        },
        "DAG_PROCESSOR": {
            "REFRESH_INTERVAL": "15",
            "DAG_BUNDLE_CONFIG_LIST": json.dumps([_bundle(name, path) for name, path in dag_folders(settings).items()]),
            "BUNDLE_REFRESH_CHECK_INTERVAL": "5",
            "MIN_FILE_PROCESS_INTERVAL": "60",
            "PARSING_PROCESSES": "1",
        },
        "LOGGING": {"BASE_LOG_FOLDER": str(airflow_home(settings) / "logs")},
        "WORKERS": {
            # Airflow's own 5 s are too short on a busy machine: a task would fail and lose an attempt.
            "EXECUTION_API_TIMEOUT": "30",
            # With 5 s, half of what the API server did was to answer these. A task that is ended by hand ends that much later.
            "MIN_HEARTBEAT_INTERVAL": "15",
        },
        "USAGE_DATA_COLLECTION": {"ENABLED": "False"},
    }
    variables = {f"AIRFLOW__{name}__{key}": value for name, keys in sections.items() for key, value in keys.items()}
    # The folder of airflow_local_settings.py: the scheduler imports there what its tasks, which are forks of it, need.
    path = python_path(settings, resource("infra") / "airflow")
    given = {name: value or "" for name, value in dotenv_values(settings.project / ".env").items()}
    variables |= {name: value for name, value in given.items() if name.startswith(("AIRFLOW_CONN_", "OPENLINEAGE"))}
    return variables | {"AIRFLOW_HOME": str(airflow_home(settings)), "PYTHONPATH": path}


def dag_folders(settings: Settings) -> dict[str, Path]:
    """The folders of DAGs by the name of their bundle: the platform's, and the project's where it has its own."""
    platform, own = resource("dags"), settings.project / "dags"
    return {"platform": platform} | ({"project": own} if own.is_dir() and not own.samefile(platform) else {})


def _bundle(name: str, path: Path) -> dict[str, object]:
    return {
        "name": name,
        "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle",
        "kwargs": {"path": str(path)},
    }


def prepare(settings: Settings) -> None:
    """Write the login page's password file, which only its owner can read."""
    airflow_home(settings).mkdir(parents=True, exist_ok=True)
    content = json.dumps({USER: settings.airflow_password.get_secret_value()})
    with os.fdopen(os.open(_passwords(settings), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as handle:
        handle.write(content)


def migrate(settings: Settings) -> None:
    """Migrate the metadata to the schema of this Airflow. The database remembers the version, so it runs once."""
    prepare(settings)
    if _migrated_version(settings) == version("apache-airflow"):
        return
    env = inherited(settings) | configuration(settings)
    log = log_file(settings, "airflow-migrate")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        command = [*_COMMAND, "db", "migrate"]
        migration = subprocess.run(command, env=env, stdout=output, stderr=subprocess.STDOUT, check=False)
    if migration.returncode:
        raise StackError(
            f"Airflow could not migrate its database (exit code {migration.returncode}); its log is {log}.",
            "read the end of that log; `lockstep reset` starts from an empty one.",
        )
    comment = sql.SQL("COMMENT ON DATABASE airflow IS {}").format(sql.Literal(version("apache-airflow")))
    with postgres.connected(settings, "airflow") as database, database.cursor() as cursor:
        cursor.execute(comment)


def post_start(settings: Settings) -> None:
    """Create the pools that the DAGs name: a task of a pool that does not exist is never scheduled. Open the API of the tasks."""
    with connected(settings) as api:
        api.ensure_pools(POOLS)
    # Airflow makes this API with the first request to it: seven CPU seconds in which its server answers nobody (seen in 3.3.2).
    # The first task would ask, and on two busy cores all others would wait for 40 s.
    net.ask(f"{settings.airflow_url}/execution/health", "the API of Airflow's tasks", _OPENING_SECONDS)


def _migrated_version(settings: Settings) -> str | None:
    with postgres.connected(settings, "airflow") as database, database.cursor() as cursor:
        cursor.execute("SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = 'airflow'")
        row = cursor.fetchone()
    return row[0] if row else None


def check_migrated(settings: Settings) -> str:
    """Check that the metadata has the schema of this Airflow."""
    migrated = _migrated_version(settings)
    if migrated != version("apache-airflow"):
        raise Unhealthy(f"Airflow's database has the schema of version {migrated}")
    return f"metadata of Airflow {migrated}"


def check_api(settings: Settings) -> str:
    """Check that the API server answers and reaches its database."""
    _state(settings, "metadatabase")
    docs = f"{settings.airflow_url}/lockstep-docs"
    return f"UI at {settings.airflow_url}, data docs at {docs}/data_docs/index.html, dbt docs at {docs}/dbt_docs/index.html"


def check(settings: Settings, component: str) -> str:
    """Check the ``scheduler``, ``dag_processor`` or ``triggerer`` on Airflow's health page."""
    _state(settings, component)
    return f"{component} is healthy"


def heartbeat(settings: Settings, component: str) -> datetime:
    """The time of the component's last heartbeat."""
    return datetime.fromisoformat(_state(settings, component)[f"latest_{component}_heartbeat"])


def _state(settings: Settings, component: str) -> dict[str, str]:
    url = f"{settings.airflow_url}/api/v2/monitor/health"
    state: dict[str, str] = net.ask(url, f"Airflow's health page {url}").json().get(component) or {}
    if state.get("status") != "healthy":
        raise Unhealthy(f"Airflow says that its {component} is {state.get('status') or 'not there'}")
    return state


def _launch(settings: Settings, arguments: list[str]) -> Launch:
    prepare(settings)
    return Launch([*_COMMAND, *arguments], configuration(settings), airflow_home(settings), nice=_NICE)


def _passwords(settings: Settings) -> Path:
    return airflow_home(settings) / "passwords.json"


def _process(name: str, arguments: list[str], component: str, megabytes: int) -> Service:
    return Service(
        name=name,
        check=partial(check, component=component),
        heartbeat=partial(heartbeat, component=component),
        launch=_launcher(arguments),
        needs=("airflow-migrate",),
        prepare=prepare,
        megabytes=megabytes,
    )


def _launcher(arguments: list[str]) -> Callable[[Settings], Launch]:
    return lambda settings: _launch(settings, arguments)


# Not `airflow`: PATH may have the one of another environment first.
_COMMAND = [sys.executable, "-m", "airflow"]

SERVICES = (
    Service(name="airflow-migrate", check=check_migrated, needs=("postgres",), prepare=migrate),
    Service(
        name="airflow-api-server",
        check=check_api,
        launch=_launcher(["api-server"]),
        needs=("airflow-migrate",),
        prepare=prepare,
        post_start=post_start,
        ports=("airflow_port",),
        megabytes=600,
    ),
    # The API server reads the logs from the disk that all processes share. Log servers would need fixed ports.
    _process("airflow-scheduler", ["scheduler", "--skip-serve-logs"], "scheduler", 900),
    _process("airflow-dag-processor", ["dag-processor"], "dag_processor", 500),
    _process("airflow-triggerer", ["triggerer", "--skip-serve-logs"], "triggerer", 400),
)
