"""Child processes end with their parent, and a child that ends by itself is reported."""

import subprocess
import sys

import pytest

from shop.readers.child_processes import ChildProcesses, DemonstrationFailed


def test_a_reader_ends_when_its_parent_has_ended():
    program = "import time; from shop.readers.child_processes import die_with_parent; die_with_parent(); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    child.stdin.close()
    assert child.wait(timeout=30) == 1


def test_a_reader_that_ends_by_itself_is_reported_at_once():
    with ChildProcesses("keyword") as children, pytest.raises(DemonstrationFailed, match="first ended by itself"):
        children.start("first")
        children.wait_until(lambda: False, "anything", seconds=30)
