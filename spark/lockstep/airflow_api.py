"""Airflow, as a person drives it: through its public API, with the password of its login page."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import httpx

from lockstep.errors import LockstepError
from lockstep.settings import Settings

USER = "admin"


class AirflowRefused(LockstepError):
    """Airflow's API did not answer, or did not do what it was asked."""


@dataclass(frozen=True)
class Run:
    """One run of a DAG; ``state`` is Airflow's own (queued, running, success, failed)."""

    dag: str
    run_id: str
    state: str
    ended_at: str | None

    def __str__(self) -> str:
        return f"{self.state} {(self.ended_at or '')[:19]}".strip()


class Airflow:
    """A session with Airflow's API (``/api/v2``)."""

    def __init__(self, client: httpx.Client) -> None:
        self._client = client

    def dags(self) -> dict[str, bool]:
        """The DAGs that were parsed, and whether each is paused."""
        return {dag["dag_id"]: dag["is_paused"] for dag in self._get("/dags", limit=100)["dags"]}

    def import_errors(self) -> dict[str, str]:
        """File to traceback, for the DAG files that cannot be imported."""
        return {e["filename"]: e["stack_trace"] for e in self._get("/importErrors")["import_errors"]}

    def unpause(self, dag: str) -> None:
        """Let the DAG run."""
        self._call("PATCH", f"/dags/{dag}", json={"is_paused": False})

    def ensure_pools(self, pools: Mapping[str, tuple[int, str]]) -> None:
        """Create the pools (name to slots and description), or bring them to these sizes."""
        known = {pool["name"] for pool in self._get("/pools", limit=100)["pools"]}
        for name, (slots, description) in pools.items():
            pool = {"name": name, "slots": slots, "description": description, "include_deferred": False}
            self._call("PATCH" if name in known else "POST", f"/pools/{name}" if name in known else "/pools", json=pool)

    def runs(self, dag: str, limit: int = 25) -> list[Run]:
        """The DAG's runs, newest first."""
        found = self._get(f"/dags/{dag}/dagRuns", order_by="-run_after", limit=limit)["dag_runs"]
        return [Run(dag, r["dag_run_id"], r["state"], r["end_date"]) for r in found]

    def succeeded(self, dag: str, start: datetime, end: datetime) -> int:
        """How many data intervals that start in ``[start, end)`` the DAG has done."""
        within = {"logical_date_gte": start.isoformat(), "logical_date_lt": end.isoformat()}
        return int(self._get(f"/dags/{dag}/dagRuns", state="success", limit=1, **within)["total_entries"])

    def last_runs(self) -> dict[str, Run]:
        """Each DAG's newest run that has ended, else its newest."""
        newest: dict[str, Run] = {}
        for dag in self.dags():
            runs = self.runs(dag)
            if runs:
                newest[dag] = next((run for run in runs if run.state in ("success", "failed")), runs[0])
        return newest

    def backfill(self, dag: str, start: datetime, end: datetime, max_active_runs: int) -> int:
        """Ask for the DAG's runs of the data intervals that start in ``[start, end]``, those that are missing or failed.

        Returns:
            The backfill's id.
        """
        asked = {
            "dag_id": dag,
            "from_date": start.isoformat(),
            "to_date": end.isoformat(),
            "max_active_runs": max_active_runs,
            "reprocess_behavior": "failed",
        }
        return int(self._call("POST", "/backfills", json=asked)["id"])

    def active_backfill(self, dag: str) -> int | None:
        """The id of the DAG's backfill that has not ended, or None."""
        found = self._get("/backfills", dag_id=dag)["backfills"]
        return next((b["id"] for b in found if b["completed_at"] is None), None)

    def _get(self, path: str, **parameters: Any) -> Any:
        return self._call("GET", path, params=parameters)

    def _call(self, method: str, path: str, **more: Any) -> Any:
        try:
            answer = self._client.request(method, f"/api/v2{path}", **more)
            answer.raise_for_status()
        except httpx.HTTPStatusError as error:
            raise AirflowRefused(f"Airflow refused {method} {path}: {error.response.text[:500]}") from error
        except httpx.HTTPError as error:
            raise AirflowRefused(
                f"Airflow did not answer {method} {path}: {error}. See `lockstep logs airflow-api-server`."
            ) from error
        return answer.json()


@contextmanager
def connected(settings: Settings) -> Iterator[Airflow]:
    """Log in as the stack's user.

    Raises:
        AirflowRefused: nobody answers there, or the password is another one.
    """
    with httpx.Client(base_url=settings.airflow_url, timeout=30) as client:
        password = settings.airflow_password.get_secret_value()
        try:
            answer = client.post("/auth/token", json={"username": USER, "password": password})
            answer.raise_for_status()
        except httpx.HTTPError as error:
            raise AirflowRefused(f"Airflow's login at {client.base_url} failed: {error}") from error
        client.headers["Authorization"] = f"Bearer {answer.json()['access_token']}"
        yield Airflow(client)
