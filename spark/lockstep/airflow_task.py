"""What a task of a DAG does around its work: it tells Airflow its results, for the page of its run, and which assets it wrote."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from lockstep.results import KEY, Outcome, Results, TableResult

log = logging.getLogger(__name__)
# Beside a task that has none, one with this niceness gets a tenth of a busy core.
_BACKGROUND = 10
# After a run, a task in the background rests this many times as long as it took: it works a quarter of the time at most.
_REST = 3


def give_way() -> None:
    """Let all that has to be fresh go first on a busy machine, from now on: in tasks for which no rows wait."""
    os.nice(_BACKGROUND)


def rest() -> None:
    """Leave this run out if the last one took so long that the task still rests: for tasks for which no rows wait.

    Where the machine has time, the rest is over long before the next run. What a person has started or cleared is never left out,
    nor is what is tried again.

    Raises:
        AirflowSkipException: the task rests. The message says until when.
    """
    from airflow.sdk import TaskInstanceState, get_current_context
    from airflow.sdk.exceptions import AirflowSkipException

    context: Any = get_current_context()
    ti = context["ti"]
    if context["dag_run"].run_type != "scheduled" or ti.try_number > 1:
        return
    last = ti.get_previous_ti(state=TaskInstanceState.SUCCESS)
    if last is None or last.start_date is None or last.end_date is None:
        return
    took = last.end_date - last.start_date
    until = last.end_date + _REST * took
    if datetime.now(UTC) < until:
        raise AirflowSkipException(
            f"This run is left out. The last one took {took.total_seconds():.0f} s, and the task rests {_REST} times as long, "
            f"until {until:%T} (UTC), so that rows are fresh. Trigger the DAG to run it now."
        )


def is_paused(dag_id: str) -> bool:
    """Whether a person has paused a DAG: then no other does its work either."""
    from airflow.sdk import get_current_context

    context: Any = get_current_context()
    return bool(context["ti"].get_dag(dag_id).is_paused)


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
