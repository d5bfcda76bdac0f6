"""Airflow's public API, with the user and the password of its login page.

The import of Airflow's client takes more than a second, so functions import it when they need it, after the login.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import httpx
from pydantic import ValidationError
from urllib3.exceptions import HTTPError

from lockstep.errors import LockstepError
from lockstep.settings import Settings

if TYPE_CHECKING:
    from airflow_client.client import ApiClient, DAGRunResponse

USER = "admin"
# The API usually answers in less than a second. It takes longer while the whole stack starts.
_TIMEOUT_SECONDS = 30.0
# The platform has fewer DAGs and pools than this, so one page has all of them, and the API gives no more. Its default is 50.
_PAGE = 100
# Types of runs.
_ASKED_FOR = {"manual", "backfill"}

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")


class AirflowRefused(LockstepError):
    """Airflow's API did not answer, or refused a request."""


class AirflowSilent(AirflowRefused):
    """Airflow's API did not answer in time, or at all."""


@dataclass(frozen=True)
class Dag:
    """A DAG that Airflow has parsed.

    Args:
        paused: it does not run, not even when somebody asks for a run.
        schedule: when it runs by itself, in Airflow's words; None: only when somebody asks.
        file: its path.
        read_at: when Airflow read the file last (UTC).
    """

    name: str
    paused: bool
    schedule: str | None = None
    file: str = ""
    read_at: datetime | None = None


@dataclass(frozen=True)
class Run:
    """One run of a DAG.

    Args:
        state: Airflow's: queued, running, success or failed.
        asked_for: a person has asked for it, by *Trigger* or by *Backfill*.
    """

    dag: str
    run_id: str
    state: str
    ended_at: str | None
    asked_for: bool = False

    @property
    def failed(self) -> bool:
        """Whether the run has failed, after all retries of its tasks."""
        return self.state == "failed"

    @property
    def ended(self) -> bool:
        """Whether the run has ended, well or not."""
        return self.state in ("success", "failed")

    def __str__(self) -> str:
        """The state, and when the run ended, for people. Programs read the fields."""
        return f"{self.state} {(self.ended_at or '')[:19]}".strip()


class Airflow:
    """A session with Airflow's API (``/api/v2``)."""

    def __init__(self, client: "ApiClient") -> None:
        from airflow_client.client import DAGApi, DagRunApi, ImportErrorApi, PoolApi

        self._dags = DAGApi(client)
        self._runs = DagRunApi(client)
        self._pools = PoolApi(client)
        self._import_errors = ImportErrorApi(client)

    def dags(self) -> dict[str, Dag]:
        """The DAGs that Airflow has parsed, by name."""
        answer = _call("list the DAGs", self._dags.get_dags, limit=_PAGE)
        return {
            dag.dag_id: Dag(dag.dag_id, dag.is_paused, dag.timetable_summary, dag.fileloc, dag.last_parsed_time)
            for dag in answer.dags
        }

    def import_errors(self) -> dict[str, str]:
        """The DAG files that cannot be imported, each with its traceback."""
        answer = _call("list the import errors", self._import_errors.get_import_errors)
        return {error.filename: error.stack_trace for error in answer.import_errors}

    def unpause(self, dag: str) -> None:
        """Let the DAG run."""
        from airflow_client.client import DAGPatchBody

        _call(f"unpause the DAG {dag}", self._dags.patch_dag, dag, DAGPatchBody(is_paused=False))

    def trigger(self, dag: str) -> None:
        """Run the DAG now."""
        from airflow_client.client import TriggerDAGRunPostBody

        _call(f"run the DAG {dag}", self._runs.trigger_dag_run, dag, TriggerDAGRunPostBody())

    def ensure_pools(self, pools: Mapping[str, tuple[int, str]]) -> None:
        """Create the pools (by name: slots and description), or change those that exist."""
        from airflow_client.client import PoolBody, PoolPatchBody

        existing = {pool.name for pool in _call("list the pools", self._pools.get_pools, limit=_PAGE).pools}
        for name, (slots, text) in pools.items():
            if name in existing:
                change = PoolPatchBody(pool=name, slots=slots, description=text, include_deferred=False)
                _call(f"change the pool {name}", self._pools.patch_pool, name, change)
            else:
                pool = PoolBody(name=name, slots=slots, description=text, include_deferred=False)
                _call(f"create the pool {name}", self._pools.post_pool, pool)

    def runs(self, dag: str, limit: int = 25) -> list[Run]:
        """The DAG's runs, newest first."""
        answer = _call(f"list the runs of {dag}", self._runs.get_dag_runs, dag, order_by=["-run_after"], limit=limit)
        return [_run(run) for run in answer.dag_runs]

    def last_runs(self, dags: Iterable[str]) -> dict[str, Run]:
        """By DAG, its newest run that has ended; its newest run if none has ended.

        A run that failed, and that a person had asked for, only counts where there is no other: who asked sees on its page
        why it failed.
        """
        found: dict[str, Run] = {}
        # A request for each DAG would cost the API server as much as the tasks do. DAGs that run each minute fill a page, and the
        # next one has the others.
        while missing := {*dags} - found.keys():
            page = self.newest_runs(missing)
            ended = [run for run in page if run.ended]
            counting = _newest_of_each(run for run in ended if not (run.failed and run.asked_for))
            is_last = len(page) < _PAGE
            found |= counting if counting and not is_last else _newest_of_each([*ended, *page]) | counting
            if is_last:
                break
        return found

    def newest_runs(self, dags: Iterable[str] | None = None) -> list[Run]:
        """The runs of these DAGs, or of all, newest first, at most a page."""
        from airflow_client.client import DAGRunsBatchBody

        wanted = None if dags is None else sorted(dags)
        body = DAGRunsBatchBody(dag_ids=wanted, order_by="-run_after", page_limit=_PAGE)
        return [_run(run) for run in _call("list the runs", self._runs.get_list_dag_runs_batch, "~", body).dag_runs]


def _newest_of_each(runs: Iterable[Run]) -> dict[str, Run]:
    """By DAG, the first of its runs."""
    newest: dict[str, Run] = {}
    for run in runs:
        newest.setdefault(run.dag, run)
    return newest


def _run(run: "DAGRunResponse") -> Run:
    return Run(
        run.dag_id,
        run.dag_run_id,
        run.state.value,
        run.end_date.isoformat() if run.end_date else None,
        asked_for=run.run_type.value in _ASKED_FOR,
    )


def _call(
    action: str, request: Callable[Parameters, Answer], *args: Parameters.args, **options: Parameters.kwargs
) -> Answer:
    """Send the request. ``action`` names it in error messages."""
    from airflow_client.client import ApiException

    options["_request_timeout"] = _TIMEOUT_SECONDS
    try:
        return request(*args, **options)
    except ApiException as error:
        raise AirflowRefused(f"Airflow refused to {action} ({error.status}): {(error.body or '')[:500]}") from error
    except HTTPError as error:
        raise AirflowSilent(
            f"Airflow did not answer when asked to {action}: {error}. See `lockstep logs airflow-api-server`."
        ) from error
    except ValidationError as error:
        raise AirflowRefused(
            f"Airflow was asked to {action}, and answered in another format than the client knows: {error}. "
            "LOCKSTEP_AIRFLOW_URL must be an Airflow of the version in the lock."
        ) from error


@contextmanager
def connected(settings: Settings) -> Iterator[Airflow]:
    """Log in as the stack's user.

    Raises:
        AirflowRefused: the API does not answer, or the password is wrong.
    """
    token = _log_in(settings)
    from airflow_client.client import ApiClient, Configuration

    # No retries here: a caller that can wait retries itself, and the others see the first error at once.
    configuration = Configuration(host=settings.airflow_url, access_token=token, retries=0)
    with ApiClient(configuration) as client:
        yield Airflow(client)


def _log_in(settings: Settings) -> str:
    """Get a token for the API. The login belongs to the auth manager of the stack, so the generated client lacks it."""
    login = {"username": USER, "password": settings.airflow_password.get_secret_value()}
    try:
        answer = httpx.post(f"{settings.airflow_url}/auth/token", json=login, timeout=_TIMEOUT_SECONDS)
        answer.raise_for_status()
    except httpx.HTTPError as error:
        raise AirflowRefused(f"Airflow's login at {settings.airflow_url} failed: {error}") from error
    return str(answer.json()["access_token"])
