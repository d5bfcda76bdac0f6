"""What the kernel lets a process do: read some directories, write into one, and connect to nobody. See Landlock.

Whatever a statement makes Spark try, it cannot leave this: https://docs.kernel.org/userspace-api/landlock.html
"""

import os
from dataclasses import dataclass
from pathlib import Path

import landlockpy
from landlockpy import AccessFS, AccessNet, Ruleset

from lockstep.stack.errors import StackError

_READ = AccessFS.READ_FILE | AccessFS.READ_DIR | AccessFS.EXECUTE
_WRITE = (
    AccessFS.READ_FILE
    | AccessFS.READ_DIR
    | AccessFS.WRITE_FILE
    | AccessFS.TRUNCATE
    | AccessFS.MAKE_REG
    | AccessFS.MAKE_DIR
    | AccessFS.MAKE_SOCK
    | AccessFS.REMOVE_FILE
    | AccessFS.REMOVE_DIR
    | AccessFS.REFER
)
# The rights that a rule for a file may have.
_OF_FILES = AccessFS.READ_FILE | AccessFS.WRITE_FILE | AccessFS.TRUNCATE | AccessFS.EXECUTE
# What any program needs.
_SYSTEM = tuple(map(Path, ("/usr", "/bin", "/lib", "/lib64", "/etc", "/sys", "/dev")))
# Of the processes its own alone: root may read the variables of all others, also from a sandbox.
_PROC = tuple(Path("/proc", name) for name in ("self", "sys", "cpuinfo", "meminfo", "stat", "cgroups", "filesystems"))
_NULL = Path("/dev/null")


@dataclass(frozen=True)
class Sandbox:
    """What a process and its children may do. The files that are open stay open.

    Args:
        readable: files and directories, with all below, beside the system's own. What does not exist is left out.
        writable: the one directory that it may write to.
        connects: whether it may connect to other processes over TCP. It may listen in any case.
    """

    readable: tuple[Path, ...]
    writable: Path
    connects: bool

    def apply(self) -> None:
        """Restrict this process. It cannot be undone."""
        with Ruleset(handled_net=AccessNet.NONE if self.connects else AccessNet.CONNECT_TCP) as rules:
            for path in (*_SYSTEM, *_PROC, *self.readable):
                _allow(rules, path, _READ)
            _allow(rules, self.writable, _WRITE)
            _allow(rules, _NULL, _WRITE)
            rules.restrict()


def require(lake: Path) -> None:
    """Refuse a system where nothing would keep the server from writing to the lake.

    Raises:
        StackError: it has no Landlock, and the lake is not mounted read-only either.
    """
    if landlockpy.supported() or not os.access(lake, os.W_OK):
        return
    raise StackError(
        "The Thrift server would not be read-only: this kernel has no Landlock, which Linux has since 5.13.",
        f"boot with `lsm=…,landlock`, or run it in a container in which {lake} is mounted read-only.",
    )


def _allow(rules: Ruleset, path: Path, access: AccessFS) -> None:
    if path.exists():
        rules.allow_path(path, access if path.is_dir() else access & _OF_FILES)
