"""What `make soak` runs and the gate does not."""

from typing import Any

import pytest


def slow(*values: Any) -> Any:
    """A case of a parametrised test of which the gate has other cases."""
    return pytest.param(*values, marks=pytest.mark.slow)
