"""What somebody at Airflow's pages sees and does: the state and the log of a task, *Trigger* and *Clear*."""

from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
from tenacity import RetryCallState, Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep.airflow_api import USER
from lockstep.results import KEY

# Of a log, what says how a task has come to where it is.
_LINES = 20
_ENDED = ("success", "failed")
_WELL = ("success", "skipped", "removed")


class TimeIsUp(AssertionError):
    """A run did not come to what a test waits for. Its message has the state of every task, and the ends of their logs."""


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
        """Wait until a task asks somebody; what it shows.

        Raises:
            TimeIsUp: it did not ask.
        """
        found = self._until(
            dag,
            run,
            seconds,
            lambda: self._get(f"dags/{dag}/dagRuns/{quote(run)}/hitlDetails")["hitl_details"],
            bool,
        )
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
        """Wait until a run has ended; how.

        Raises:
            TimeIsUp: it still runs.
        """
        state = self._until(
            dag,
            run,
            seconds,
            lambda: self._get(f"dags/{dag}/dagRuns/{quote(run)}")["state"],
            lambda state: state in _ENDED,
        )
        return str(state)

    def story(self, dag: str, run: str) -> str:
        """How every task of a run stands, with the ends of the logs of all tries of those that have not ended well."""
        path = f"dags/{dag}/dagRuns/{quote(run)}/taskInstances"
        lines = []
        for task in self._get(path)["task_instances"]:
            name, state, attempt = task["task_id"], task["state"], task["try_number"]
            lines.append(f"{name}: {state}, try {attempt}")
            if state not in _WELL:
                for number in range(1, attempt + 1):
                    lines += [f"    try {number} | {line}" for line in self._end_of_log(dag, run, name, number)]
        events = self._get(f"eventLogs?dag_id={dag}&run_id={quote(run)}&order_by=when")["event_logs"]
        lines += [f"{one['when']} {one['event']} {one['task_id'] or ''} {one['extra'] or ''}" for one in events]
        return "\n".join(lines)

    def _until(self, dag: str, run: str, seconds: float, ask: Callable[[], Any], is_it: Callable[[Any], bool]) -> Any:
        def give_up(last: RetryCallState) -> None:
            answer = last.outcome.result() if last.outcome else None
            raise TimeIsUp(
                f"After {seconds:.0f} s, what Airflow says of the run {run} of {dag} is {answer!r}:\n{self.story(dag, run)}"
            )

        poll = Retrying(
            stop=stop_after_delay(seconds),
            wait=wait_fixed(0.5),
            retry=retry_if_result(lambda answer: not is_it(answer)),
            retry_error_callback=give_up,
        )
        return poll(ask)

    def _end_of_log(self, dag: str, run: str, task: str, attempt: int) -> list[str]:
        try:
            return self.log(dag, run, task, attempt)[-_LINES:]
        except httpx.HTTPStatusError as error:
            # A try that never began has none.
            return [f"no log: Airflow answered {error.response.status_code}"]

    def _get(self, path: str) -> dict[str, Any]:
        answer = self._client.get(f"/api/v2/{path}", headers={"Accept": "application/json"}).raise_for_status()
        return dict(answer.json())

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        return dict(self._client.post(f"/api/v2/{path}", json=body).raise_for_status().json())
