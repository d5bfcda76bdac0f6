"""A child process that ends by itself is reported."""

import pytest

from shop.readers.child_processes import ChildProcesses, DemonstrationFailed


def test_a_reader_that_ends_by_itself_is_reported_at_once():
    with ChildProcesses("keyword") as children, pytest.raises(DemonstrationFailed, match="first ended by itself"):
        children.start("first")
        children.wait_until(lambda: False, "anything", seconds=30)
