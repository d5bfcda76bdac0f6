"""What the tasks of the DAG of erasures say when something fails: Airflow keeps it."""

import traceback

import pytest

from lockstep.erase_tasks import ErasureFailed, naming_nobody


def test_an_error_names_nobody_and_neither_does_its_traceback() -> None:
    with (
        pytest.raises(ErasureFailed, match=r"ValueError: no row of \*\*\*, but of ann2") as failed,
        naming_nobody("ann"),
    ):
        raise ValueError("no row of ann, but of ann2")
    assert "of ann," not in "".join(traceback.format_exception(failed.value))


def test_other_errors_stay_as_they_are_so_that_what_is_refused_is_not_tried_again() -> None:
    for subject in ("ann", ""):
        with pytest.raises(KeyError), naming_nobody(subject):
            raise KeyError("a table")
