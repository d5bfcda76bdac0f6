"""What a task of a DAG does around its work: it tells Airflow its results, for the page of its run, and which assets it wrote."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

from lockstep.results import KEY, Outcome, Results, TableResult

log = logging.getLogger(__name__)
# Beside a task that has none, one with this niceness gets a tenth of a busy core.
_BACKGROUND = 10


def give_way() -> None:
    """Let all that has to be fresh go first on a busy machine, from now on: in tasks for which no rows wait."""
    os.nice(_BACKGROUND)


@contextmanager
def reported() -> Iterator[Results]:
    """Collect the results of the task that runs, and show them on the page of its run; also when it fails.

    If it succeeds, Airflow gets an event for each asset that it has written.
    """
    # Imported here: it needs Airflow.
    from lockstep.lineage import assets

    results = Results()
    try:
        yield results
        assets.emit()
    except Exception as error:
        results.failed(error)
        raise
    finally:
        _publish(results)


@contextmanager
def refusable(what: str, refusal: type[Exception]) -> Iterator[Results]:
    """The same for a task that may be refused: that is a result of its own. It is not tried again: it would be refused again.

    Args:
        what: such as ``this replay``.
        refusal: the error that says why.
    """
    from airflow.sdk.exceptions import AirflowFailException

    with reported() as results:
        try:
            yield results
        except refusal as refused:
            results.add(TableResult(what, Outcome.REFUSED, detail=str(refused)))
            raise AirflowFailException(str(refused)) from None


def _publish(results: Results) -> None:
    from airflow.sdk import get_current_context
    from airflow.sdk.exceptions import AirflowRuntimeError

    try:
        get_current_context()["ti"].xcom_push(KEY, results.as_rows())
    except AirflowRuntimeError as error:
        # The work is done, or has failed for a reason of its own: that Airflow's API is away must not decide.
        log.warning("Airflow did not take the results for the page of the run: %s", error)
