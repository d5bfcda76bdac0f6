"""What `lockstep cdc verify` is asked to compare."""

import pytest

from lockstep.cli.cdc import verify
from lockstep.errors import LockstepError


def test_a_database_of_which_nothing_is_captured_is_refused_and_not_equal() -> None:
    with pytest.raises(LockstepError, match="None of these tables is of crm: name one of shop"):
        verify(None, database="crm", timeout=0)
