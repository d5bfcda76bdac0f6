"""Fetch the jars of the stack with Apache Ivy, and check every jar against its SHA-256 in ``infra/jars.lock``."""

import fcntl
import hashlib
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from lockstep.resources import resource
from lockstep.settings import Settings
from lockstep.stack.errors import StackError
from lockstep.stack.java import find_java, trust_options

IVY_FILE = resource("infra") / "ivy.xml"
LOCK_FILE = resource("infra") / "jars.lock"
_PATTERN = "[conf]/[artifact]-[revision](-[classifier]).[ext]"


def spark_home() -> Path:
    """The directory where pyspark keeps its jars and scripts (``SPARK_HOME``)."""
    package = find_spec("pyspark")
    if package is None or package.origin is None:
        raise StackError("pyspark is not installed in this environment.", "run `make setup`.")
    return Path(package.origin).parent


def locked(lock: Path = LOCK_FILE) -> dict[str, str]:
    """The lock: ``<server>/<file>`` to its SHA-256. The file is in the format of ``sha256sum``."""
    pairs = (line.split(maxsplit=1) for line in lock.read_text().splitlines())
    return {path: digest for digest, path in pairs}


def directory(settings: Settings, lock: Path = LOCK_FILE) -> Path:
    """The directory of the jars of this lock. Another lock has another directory, so checkouts can share the cache."""
    return settings.cache / f"jars-{hashlib.sha256(lock.read_bytes()).hexdigest()[:12]}"


def classpath(settings: Settings, server: str) -> list[Path]:
    """The jars of ``spark``, ``kafka`` or ``connect``."""
    return [directory(settings) / path for path in locked() if path.startswith(f"{server}/")]


def broken(root: Path, lock: Path = LOCK_FILE) -> dict[str, str]:
    """The jars below ``root`` that are ``missing`` or ``corrupt``, by path. Empty when every jar is as the lock says."""
    wrong = {}
    for path, digest in locked(lock).items():
        jar = root / path
        if not jar.is_file():
            wrong[path] = "missing"
        elif _sha256(jar) != digest:
            wrong[path] = "corrupt"
    return wrong


def fetch(settings: Settings, say: Callable[[str], None] = print, lock: Path = LOCK_FILE) -> int:
    """Bring every jar of the lock into the cache. Fetches nothing when all are there and intact.

    Returns:
        How many jars were fetched.

    Raises:
        StackError: Ivy could not fetch them, or the fetched files are not those of the lock.
    """
    settings.cache.mkdir(parents=True, exist_ok=True)
    root = directory(settings, lock)
    with _exclusively(settings.cache / "jars.flock"):
        wrong = broken(root, lock)
        if not wrong:
            return 0
        for path in (path for path, state in wrong.items() if state == "corrupt"):
            say(f"{root / path} is corrupt (its SHA-256 is not the one in {lock.name}): fetching it again")
        say(f"fetching {len(wrong)} of {len(locked(lock))} jars with Ivy (a minute or two the first time)")
        fetched = _retrieve(settings)
        try:
            still = {path: state for path, state in broken(fetched, lock).items() if path in wrong}
            if still:
                # The copy in Ivy's own cache may be the broken one: the next run must not get it again.
                shutil.rmtree(settings.cache / "ivy", ignore_errors=True)
                named = ", ".join(f"{path} ({state})" for path, state in sorted(still.items())[:5])
                raise StackError(
                    f"{len(still)} jars that Ivy fetched are not those of {lock}: {named}.",
                    "run `lockstep jars` again (Ivy's cache was emptied). If the error stays, the mirror of "
                    "LOCKSTEP_IVY_SETTINGS serves other files. After a change of ivy.xml, `lockstep jars --relock`.",
                )
            for path in wrong:
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (fetched / path).replace(root / path)
        finally:
            shutil.rmtree(fetched)
    return len(wrong)


def relock(settings: Settings, lock: Path = LOCK_FILE) -> int:
    """Write the lock again from what Ivy resolves now. Returns the number of jars in it."""
    settings.cache.mkdir(parents=True, exist_ok=True)
    fetched = _retrieve(settings)
    jars = sorted(jar.relative_to(fetched).as_posix() for jar in fetched.rglob("*.jar"))
    lock.write_text("".join(f"{_sha256(fetched / jar)}  {jar}\n" for jar in jars))
    shutil.rmtree(fetched)
    return len(jars)


def _retrieve(settings: Settings) -> Path:
    """Run Ivy. Returns a directory with ``spark/``, ``kafka/`` and ``connect/``, on the cache's own file system."""
    ivy = next((spark_home() / "jars").glob("ivy-*.jar"))
    java = find_java()
    target = settings.cache / f"fetching-{os.getpid()}"
    mirror = ["-settings", str(settings.ivy_settings)] if settings.ivy_settings else []
    command = [str(java.executable), *trust_options(java, settings.cache), "-jar", str(ivy), "-ivy", str(IVY_FILE)]
    command += [*mirror, "-cache", str(settings.cache / "ivy"), "-retrieve", f"{target}/{_PATTERN}"]
    log = settings.cache / "ivy.log"
    with log.open("w") as output:
        ivy_run = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, check=False)
    if ivy_run.returncode:
        shutil.rmtree(target, ignore_errors=True)
        raise StackError(
            f"Ivy could not fetch the jars (exit code {ivy_run.returncode}); its log is {log}.",
            "check the network; behind a mirror, set LOCKSTEP_IVY_SETTINGS to an ivysettings.xml that names it.",
        )
    return target


def _sha256(path: Path) -> str:
    with path.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


@contextmanager
def _exclusively(path: Path) -> Iterator[None]:
    with path.open("w") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
