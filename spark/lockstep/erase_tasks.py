"""The work of the tasks of the DAG ``erase``: one function for each task, as in :mod:`lockstep.tasks`.

They call what ``lockstep erase`` calls. What they return, show and raise names nobody, because Airflow keeps it.
"""

import logging
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lockstep import settings as configuration
from lockstep.catalog import connect
from lockstep.erase import asked_in_airflow, describe, receipt, run
from lockstep.erase.needles import as_word
from lockstep.erase.request import ErasureRefused, asked_for, check_environments, check_signature
from lockstep.erase.scope import scope_of
from lockstep.errors import LockstepError
from lockstep.results import Outcome, Results, TableResult

log = logging.getLogger(__name__)
_LIVE = (
    "Stop the live queries with `lockstep down live` before it begins, and start them again with `lockstep up live`."
)


class ErasureFailed(LockstepError):
    """The erasure failed. Its message is that of the cause, without the subject."""


class TracesLeft(LockstepError):
    """Something is left of what was erased. The receipt names it."""


@contextmanager
def naming_nobody(subject: str) -> Iterator[None]:
    """Blank the subject in the message of an error: Airflow would keep it in the log of the task, and on the page of the run."""
    try:
        yield
    except Exception as error:
        text = str(error)
        if not subject or subject not in text:
            raise
        blanked = re.sub(as_word(subject), "***", text)
        # Not from the error: its traceback has the message too.
        raise ErasureFailed(f"{type(error).__name__}: {blanked}") from None


def plan(params: Mapping[str, Any], run_id: str, by: str, results: Results) -> str:
    """Take what the form says out of Airflow, and find what would be erased; as Markdown, for who approves it.

    Raises:
        ErasureRefused: what was asked for is malformed, or not signed, or an environment has a sample of the records.
    """
    settings = configuration.load()
    form = asked_in_airflow.take(settings, run_id, params, by)
    with naming_nobody(form.subject):
        check_signature(form.subject, form.by, form.reason)
        check_environments(settings)
        asked = asked_for(settings, form.subject, form.ranges)
        with connect(settings, "erase") as spark:
            scope = scope_of(spark, settings, asked)
    results.add(*describe.planned(scope))
    found = "\n".join(f"- {line}" for line in describe.as_lines(scope))
    return f"{form.by} asks for it. It cannot be undone.\n\n{found}\n\n{_LIVE}"


def live_is_stopped(run_id: str, results: Results) -> bool:
    """Whether no live query runs any more that has read what is to be erased. Those that run are shown."""
    settings = configuration.load()
    form = asked_in_airflow.taken(settings, run_id)
    running = run.running_queries(settings, asked_for(settings, form.subject, form.ranges))
    results.add(*(TableResult(view, Outcome.WAITING, detail=_LIVE) for view in running))
    return not running


def erase(run_id: str, approved_by: str, results: Results) -> str:
    """Erase what the run was asked for; where the receipt is.

    Raises:
        TracesLeft: the receipt names what is left.
        ErasureRefused: the run has ended.
    """
    settings = configuration.load()
    form = asked_in_airflow.taken(settings, run_id)
    with naming_nobody(form.subject), connect(settings, "erase") as spark:
        asked = asked_for(settings, form.subject, form.ranges)
        done = run.erase(spark, settings, asked, form.by, form.reason, approved_by)
    if done is None:
        return "No record was found, so nothing was erased."
    results.add(*describe.erased(done.receipt))
    for line in describe.lines(done.receipt):
        log.info("%s", line)
    if not receipt.is_empty(done.receipt):
        raise TracesLeft(f"Something is left, which the receipt names: {done.file}.")
    return str(done.file)


def forget(run_id: str, params: Mapping[str, Any]) -> None:
    """Remove what the run was asked for."""
    asked_in_airflow.forget(configuration.load(), run_id, params)


__all__ = [
    "ErasureFailed",
    "ErasureRefused",
    "TracesLeft",
    "erase",
    "forget",
    "live_is_stopped",
    "naming_nobody",
    "plan",
]
