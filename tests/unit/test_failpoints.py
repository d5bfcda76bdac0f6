"""A failpoint kills at the named place and time, and costs nothing where nobody asked for it."""

import os
import signal
import subprocess
import sys

PROGRAM = """
from lockstep.failpoints import failpoint
for n in range(4):
    failpoint("other")
    failpoint("here")
    print(n, flush=True)
"""


def run(**more):
    command = [sys.executable, "-c", PROGRAM]
    return subprocess.run(command, env=os.environ | more, capture_output=True, start_new_session=True, check=False)


def test_the_group_is_killed_at_the_nth_time():
    died = run(LOCKSTEP_FAILPOINT="here:3")
    assert (died.returncode, died.stdout.split()) == (-signal.SIGKILL, [b"0", b"1"])


def test_nothing_happens_where_no_point_or_another_is_named():
    assert run().returncode == 0
    assert run(LOCKSTEP_FAILPOINT="elsewhere:1").returncode == 0
