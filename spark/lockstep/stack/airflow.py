"""Airflow 3: its configuration in variables, its four processes, its migration, and its health."""

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

import httpx
from psycopg2 import sql

from lockstep.airflow_api import connected
from lockstep.orchestration import POOLS
from lockstep.resources import resource
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack import net, postgres
from lockstep.stack.errors import StackError, Unhealthy
from lockstep.stack.parts import Launch, Part, inherited, log_file, python_path

USER = "admin"


def airflow_home(settings: Settings) -> Path:
    """``AIRFLOW_HOME``: logs, and the password file of the login page."""
    return settings.home / "airflow"


def configuration(settings: Settings) -> dict[str, str]:
    """Airflow's configuration as its own variables; the same in every process, secrets included."""
    jwt = settings.airflow_jwt_secret.get_secret_value()
    where = f"{settings.postgres_user}:{settings.postgres_password.get_secret_value()}@{settings.postgres_host}"
    sections = {
        "CORE": {
            "EXECUTOR": "LocalExecutor",
            "PARALLELISM": "4",
            "LOAD_EXAMPLES": "False",
            "DAGS_ARE_PAUSED_AT_CREATION": "True",
            "DEFAULT_TIMEZONE": "utc",
            "FERNET_KEY": settings.airflow_fernet_key.get_secret_value(),
            "EXECUTION_API_SERVER_URL": f"{settings.airflow_url}/execution/",
            "AUTH_MANAGER": "airflow.api_fastapi.auth.managers.simple.simple_auth_manager.SimpleAuthManager",
            "SIMPLE_AUTH_MANAGER_USERS": f"{USER}:admin",
            "SIMPLE_AUTH_MANAGER_PASSWORDS_FILE": str(_passwords(settings)),
        },
        "DATABASE": {
            "SQL_ALCHEMY_CONN": f"postgresql+psycopg2://{where}:{settings.postgres_port}/airflow",
            "LOAD_DEFAULT_CONNECTIONS": "False",
        },
        "API": {
            "HOST": settings.listen,
            "PORT": str(settings.airflow_port),
            # As a browser on this machine sees it; tasks take the URL above.
            "BASE_URL": f"http://{LOOPBACK}:{settings.airflow_port}",
            "WORKERS": "1",
            "SECRET_KEY": hmac.new(jwt.encode(), b"api", hashlib.sha256).hexdigest(),
        },
        "API_AUTH": {"JWT_SECRET": jwt},
        # A chain of tasks is as fast as the scheduler comes round.
        "SCHEDULER": {
            "SCHEDULER_IDLE_SLEEP_TIME": "0.2",
            "SCHEDULER_HEARTBEAT_SEC": "2",
            "JOB_HEARTBEAT_SEC": "5",
            # The tasks of a killed scheduler die with it: its successor looks for them this often, not every five minutes.
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
        # A busy machine must not cost a task its attempt.
        "WORKERS": {"EXECUTION_API_TIMEOUT": "30"},
        "USAGE_DATA_COLLECTION": {"ENABLED": "False"},
    }
    variables = {f"AIRFLOW__{name}__{key}": value for name, keys in sections.items() for key, value in keys.items()}
    # The folder of airflow_local_settings.py, which lets the tasks be forks of a scheduler that has imported what they need.
    path = python_path(settings, resource("infra") / "airflow")
    return variables | {"AIRFLOW_HOME": str(airflow_home(settings)), "PYTHONPATH": path}


def dag_folders(settings: Settings) -> dict[str, Path]:
    """The folders of DAGs by the name of their bundle: the platform's, and the project's where it has its own."""
    platform, own = resource("dags"), settings.project / "dags"
    return {"platform": platform} | ({"project": own} if own.is_dir() and not own.samefile(platform) else {})


def _bundle(name: str, path: Path) -> dict[str, object]:
    return {"name": name, "classpath": "airflow.dag_processing.bundles.local.LocalDagBundle", "kwargs": {"path": str(path)}}


def prepare(settings: Settings) -> None:
    """Write the login page's password file, for its owner only."""
    airflow_home(settings).mkdir(parents=True, exist_ok=True)
    content = json.dumps({USER: settings.airflow_password.get_secret_value()})
    with os.fdopen(os.open(_passwords(settings), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as handle:
        handle.write(content)


def migrate(settings: Settings) -> None:
    """Bring the metadata to this Airflow's schema; the database remembers the version, so it is done once."""
    prepare(settings)
    if _migrated(settings) == version("apache-airflow"):
        return
    env = inherited(settings) | configuration(settings)
    log = log_file(settings, "airflow-migrate")
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as output:
        command = [*_COMMAND, "db", "migrate"]
        done = subprocess.run(command, env=env, stdout=output, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        raise StackError(
            f"Airflow could not migrate its database (exit code {done.returncode}); its log is {log}.",
            "read the end of that log; `lockstep reset` starts from an empty one.",
        )
    comment = sql.SQL("COMMENT ON DATABASE airflow IS {}").format(sql.Literal(version("apache-airflow")))
    with postgres.connected(settings, "airflow") as database, database.cursor() as cursor:
        cursor.execute(comment)


def settle(settings: Settings) -> None:
    """Make the pools that the DAGs name: a task of a pool that does not exist is never scheduled."""
    with connected(settings) as api:
        api.ensure_pools(POOLS)


def _migrated(settings: Settings) -> str | None:
    with postgres.connected(settings, "airflow") as database, database.cursor() as cursor:
        cursor.execute("SELECT shobj_description(oid, 'pg_database') FROM pg_database WHERE datname = 'airflow'")
        row = cursor.fetchone()
    return row[0] if row else None


def check_migrated(settings: Settings) -> str:
    """The metadata has this Airflow's schema."""
    found = _migrated(settings)
    if found != version("apache-airflow"):
        raise Unhealthy(f"Airflow's database is of version {found}")
    return f"metadata of Airflow {found}"


def check_api(settings: Settings) -> str:
    """The API server answers, and reaches its database."""
    _state(settings, "metadatabase")
    return f"UI at {settings.airflow_url}"


def check(settings: Settings, component: str) -> str:
    """What Airflow's own health page says of the ``scheduler``, ``dag_processor`` or ``triggerer``."""
    _state(settings, component)
    return f"{component} is healthy"


def beat(settings: Settings, component: str) -> datetime:
    """When the component last wrote its heartbeat."""
    return datetime.fromisoformat(_state(settings, component)[f"latest_{component}_heartbeat"])


def _state(settings: Settings, component: str) -> dict[str, str]:
    url = f"{settings.airflow_url}/api/v2/monitor/health"
    try:
        answer = net.http().get(url)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise Unhealthy(f"Airflow's health page {url}: {error}") from error
    state: dict[str, str] = answer.json().get(component) or {}
    if state.get("status") != "healthy":
        raise Unhealthy(f"Airflow says that its {component} is {state.get('status') or 'not there'}")
    return state


def _launch(settings: Settings, arguments: list[str]) -> Launch:
    prepare(settings)
    return Launch([*_COMMAND, *arguments], configuration(settings), airflow_home(settings))


def _passwords(settings: Settings) -> Path:
    return airflow_home(settings) / "passwords.json"


def _process(name: str, arguments: list[str], component: str, megabytes: int) -> Part:
    return Part(
        name=name,
        check=partial(check, component=component),
        beat=partial(beat, component=component),
        launch=_launcher(arguments),
        needs=("airflow-migrate",),
        prepare=prepare,
        megabytes=megabytes,
    )


def _launcher(arguments: list[str]) -> Callable[[Settings], Launch]:
    return lambda settings: _launch(settings, arguments)


# Not `airflow`: that would be searched on PATH, and be another environment's.
_COMMAND = [sys.executable, "-m", "airflow"]

PARTS = (
    Part(name="airflow-migrate", check=check_migrated, needs=("postgres",), prepare=migrate),
    Part(
        name="airflow-api-server",
        check=check_api,
        launch=_launcher(["api-server"]),
        needs=("airflow-migrate",),
        prepare=prepare,
        settle=settle,
        ports=("airflow_port",),
        megabytes=600,
    ),
    # Logs are read from the disk that all processes share; their own log servers would need fixed ports.
    _process("airflow-scheduler", ["scheduler", "--skip-serve-logs"], "scheduler", 900),
    _process("airflow-dag-processor", ["dag-processor"], "dag_processor", 500),
    _process("airflow-triggerer", ["triggerer", "--skip-serve-logs"], "triggerer", 400),
)
