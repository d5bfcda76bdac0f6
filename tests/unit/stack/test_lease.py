import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from lockstep.settings import Settings
from lockstep.stack import lease
from lockstep.stack.errors import StackError

HOLD = """
import os, sys
from lockstep.settings import Settings
from lockstep.stack import lease
lease.take(Settings(lake=sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def holding(settings: Settings) -> Iterator[subprocess.Popen[str]]:
    """Another process that holds the lease."""
    command = [sys.executable, "-c", HOLD, settings.lake]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_second_server_on_one_lake_is_refused_and_the_error_names_the_holder(settings: Settings) -> None:
    with holding(settings) as other:
        assert lease.holder(settings) == other.pid
        with pytest.raises(StackError, match=rf"pid {other.pid}\) holds the lake {settings.lake}"):
            lease.take(settings)


def test_the_lease_ends_with_its_holder_however_that_ends(settings: Settings) -> None:
    with holding(settings) as other:
        other.kill()
        other.wait()
        assert lease.holder(settings) is None
        descriptor = lease.take(settings)
    assert descriptor is not None
    assert lease.holder(settings) == os.getpid()
    os.close(descriptor)


def test_a_lake_that_is_not_on_a_local_disk_needs_no_lease() -> None:
    assert lease.take(Settings(lake="s3a://bucket/lake")) is None
    assert lease.holder(Settings(lake="s3a://bucket/lake")) is None


def test_a_file_address_and_a_path_are_one_lake(settings: Settings) -> None:
    assert lease.lease_file(Settings(lake=f"file://{settings.lake}")) == lease.lease_file(settings)
