"""What somebody at Airflow's pages sees and does: the state and the log of a task, *Trigger* and *Clear*."""

from typing import Any
from urllib.parse import quote

import httpx
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep.airflow_api import USER
from lockstep.results import KEY


class AirflowPages:
    """A login at Airflow's API."""

    def __init__(self, url: str, password: str) -> None:
        self._client = httpx.Client(base_url=url, timeout=60)
        login = {"username": USER, "password": password}
        token = self._client.post("/auth/token", json=login).raise_for_status().json()["access_token"]
        self._client.headers["Authorization"] = f"Bearer {token}"

    def runs(self, dag: str) -> list[str]:
        """The runs of a DAG that have ended, the newest first."""
        runs = self._get(f"dags/{dag}/dagRuns?order_by=-run_after")["dag_runs"]
        return [run["dag_run_id"] for run in runs if run["state"] in ("success", "failed")]

    def states(self, dag: str, run: str) -> dict[str, str]:
        """By task, its state."""
        tasks = self._get(f"dags/{dag}/dagRuns/{quote(run)}/taskInstances")["task_instances"]
        return {task["task_id"]: task["state"] for task in tasks}

    def log(self, dag: str, run: str, task: str, attempt: int = 1) -> list[str]:
        """The lines of a task's log."""
        lines = self._get(f"dags/{dag}/dagRuns/{quote(run)}/taskInstances/{task}/logs/{attempt}")["content"]
        return [line["event"] for line in lines]

    def trigger(self, dag: str, **form: Any) -> str:
        """Start a run, with what was filled in; its name."""
        run: str = self._post(f"dags/{dag}/dagRuns", {"logical_date": None, "conf": form})["dag_run_id"]
        return run

    def form(self, dag: str, run: str) -> dict[str, Any]:
        """What Airflow shows of the form of a run."""
        return dict(self._get(f"dags/{dag}/dagRuns/{quote(run)}")["conf"])

    def asked(self, dag: str, run: str, task: str, seconds: float = 240) -> str:
        """Wait until a task asks somebody; what it shows."""
        poll = Retrying(
            stop=stop_after_delay(seconds), wait=wait_fixed(0.5), retry=retry_if_result(lambda found: not found)
        )
        found = poll(lambda: self._get(f"dags/{dag}/dagRuns/{quote(run)}/hitlDetails")["hitl_details"])
        (detail,) = (one for one in found if one["task_instance"]["task_id"] == task)
        return str(detail["body"])

    def answer(self, dag: str, run: str, task: str, option: str) -> None:
        """Answer what a task asks."""
        path = f"/api/v2/dags/{dag}/dagRuns/{quote(run)}/taskInstances/{task}/-1/hitlDetails"
        self._client.patch(path, json={"chosen_options": [option]}).raise_for_status()

    def results(self, dag: str, run: str, task: str) -> dict[str, str]:
        """What the tab *Tables* of a run shows of a task: by table, its outcome."""
        path = f"dags/{dag}/dagRuns/{quote(run)}/taskInstances/{task}/xcomEntries/{KEY}"
        return {row["table"]: row["outcome"] for row in self._get(path)["value"]}

    def clear(self, dag: str, run: str, task: str) -> None:
        """Clear a task and what comes after it, as the form proposes."""
        wanted = {"dag_run_id": run, "task_ids": [task], "include_downstream": True}
        self._post(f"dags/{dag}/clearTaskInstances", {**wanted, "dry_run": False, "only_failed": False})

    def page(self, path: str) -> str:
        """A page of a plugin."""
        return self._client.get(path).raise_for_status().text

    def ended(self, dag: str, run: str, seconds: float = 240) -> str:
        """Wait until a run has ended; how."""
        poll = Retrying(
            stop=stop_after_delay(seconds), wait=wait_fixed(0.5), retry=retry_if_result(lambda s: s not in _ENDED)
        )
        return str(poll(lambda: self._get(f"dags/{dag}/dagRuns/{quote(run)}")["state"]))

    def _get(self, path: str) -> dict[str, Any]:
        answer = self._client.get(f"/api/v2/{path}", headers={"Accept": "application/json"}).raise_for_status()
        return dict(answer.json())

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return dict(self._client.post(f"/api/v2/{path}", json=body).raise_for_status().json())


_ENDED = ("success", "failed")
