"""Readers as processes of their own do not outlive who started them, and do not fail in silence."""

import subprocess
import sys

import pytest

from shop.readers.children import Children, DemoFailed


def test_a_reader_ends_when_the_process_that_started_it_is_gone():
    program = "import time; from shop.readers.children import die_with_parent; die_with_parent(); time.sleep(60)"
    child = subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE)
    child.stdin.close()
    assert child.wait(timeout=30) == 1


def test_a_reader_that_ends_by_itself_is_told_at_once():
    with Children("keyword") as children, pytest.raises(DemoFailed, match="first ended by itself"):
        children.start("first")
        children.until(lambda: False, "anything", seconds=30)
