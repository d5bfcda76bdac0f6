"""What all tests share: each is marked by the folder that it lies in (``tests/unit`` and so on)."""

from pathlib import Path

import pytest
from hypothesis import settings

TESTS = Path(__file__).parent

# How long an example takes says how busy the machine is, not whether it is right.
settings.register_profile("lockstep", deadline=None)
settings.load_profile("lockstep")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by folder, so that a test is never in the wrong run for want of a decorator."""
    for item in items:
        # The tests of a project lie one folder deeper: tests/shop/unit.
        folder, below, *_ = Path(item.path).relative_to(TESTS).parts
        item.add_marker(below if folder == "shop" else folder)
