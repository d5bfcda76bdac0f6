"""A DAG's form in Airflow's UI, filled in as a person does it."""

import re
from datetime import datetime
from typing import Any

from playwright.sync_api import Locator, Page, expect
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep.airflow_api import Airflow, Run, connected
from lockstep.settings import Settings

MINUTES_FOR_A_RUN = 10


class Form:
    """The form of one DAG, open.

    Fields are named by their labels.
    """

    def __init__(self, page: Page, settings: Settings, dag: str) -> None:
        self._page, self._settings, self._dag = page, settings, dag
        page.goto(f"{settings.airflow_url}/dags/{dag}")
        page.get_by_role("button", name="Trigger").first.click()
        self.dialog = self._named(f"Trigger Dag - {dag}")
        expect(self.dialog.get_by_role("button", name="Advanced Options")).to_be_visible()

    def _named(self, heading: str) -> Locator:
        return self._page.get_by_role("dialog").filter(has=self._page.get_by_role("heading", name=heading))

    def open(self, section: str) -> None:
        """Unfold a section of the form."""
        self.dialog.get_by_role("button", name=section).click()

    def field(self, label: str) -> Locator:
        # A required field's label ends with a star.
        named = re.compile(rf"^{re.escape(label)}\s*\*?$")
        return self.dialog.get_by_role("group").filter(has=self._page.get_by_text(named))

    def write(self, label: str, text: str) -> None:
        self.field(label).get_by_role("textbox").fill(text)

    def choose(self, label: str, option: str) -> None:
        """Pick an option of a drop-down."""
        self.field(label).get_by_role("combobox").fill(option)
        self._page.get_by_role("option", name=option).first.click()

    def tick(self, label: str) -> None:
        box = self.field(label).get_by_role("checkbox")
        box.press("Space")
        expect(box).to_be_checked()

    def pick(self, label: str, moment: datetime) -> None:
        """Type a date and a time into the calendar of a field."""
        self.field(label).get_by_test_id("datetime-input").click()
        day = self._page.get_by_placeholder("YYYY/MM/DD")
        day.fill(f"{moment:%Y/%m/%d}")
        self._page.get_by_placeholder("HH:mm").fill(f"{moment:%H:%M}")
        self._page.keyboard.press("Escape")
        # Or it is still there when the next field opens its own.
        expect(day).to_have_count(0)
        expect(self.field(label)).to_contain_text(f"{moment:%b %d, %Y %H:%M}")

    def send(self) -> str:
        """Trigger the run that the form describes; its id."""
        with connected(self._settings) as airflow:
            before = newest(airflow, self._dag)
            self.dialog.get_by_role("button", name="Trigger", exact=True).click()
            expect(self.dialog).to_be_hidden()
            patiently = Retrying(
                stop=stop_after_delay(30), wait=wait_fixed(1), retry=retry_if_result(lambda r: r == before)
            )
            return str(patiently(newest, airflow, self._dag))


class Backfill(Form):
    """The form of a backfill of one DAG, open."""

    def __init__(self, page: Page, settings: Settings, dag: str) -> None:
        super().__init__(page, settings, dag)
        self.dialog.get_by_text("Backfill", exact=True).click()
        self.dialog = self._named(f"Run Backfill - {dag}")
        expect(self.dialog.get_by_text("Reprocess Behavior")).to_be_visible()

    def reprocess(self, behaviour: str) -> None:
        """Choose which of the days with a run are computed again."""
        self.dialog.get_by_text(behaviour, exact=True).click()

    def at_once(self, runs: int) -> None:
        """Allow so many active runs."""
        self.dialog.get_by_role("spinbutton").fill(str(runs))

    def run(self, runs: int, minutes: float = MINUTES_FOR_A_RUN) -> None:
        """Begin the backfill, once the form says that it is of so many runs, and wait until all of them have ended."""
        runs_of = "1 run" if runs == 1 else f"{runs} runs"
        expect(self.dialog.get_by_text(f"{runs_of} will be triggered.")).to_be_visible()
        before = len(self._backfills())
        self.dialog.get_by_role("button", name="Run Backfill").click()
        expect(self.dialog).to_be_hidden()
        patiently = Retrying(
            stop=stop_after_delay(60 * minutes),
            wait=wait_fixed(2),
            retry=retry_if_result(lambda ended: not ended),
        )
        patiently(lambda: len(found := self._backfills()) > before and all(b["completed_at"] for b in found))

    def _backfills(self) -> list[dict[str, Any]]:
        address = f"{self._settings.airflow_url}/api/v2/backfills"
        return list(self._page.request.get(address, params={"dag_id": self._dag}).json()["backfills"])


def show(page: Page, what: str) -> None:
    """Turn to the Grid or the Graph; Airflow remembers which from page to page."""
    page.get_by_role("button", name=what).or_(page.get_by_label(f"Show {what}")).first.click()


def newest(airflow: Airflow, dag: str) -> str | None:
    """The id of the DAG's newest run."""
    return next((run.run_id for run in airflow.runs(dag, 1)), None)


def ended(settings: Settings, dag: str, run_id: str) -> str:
    """The state in which the run has ended."""

    def look(airflow: Airflow) -> Run:
        return next(run for run in airflow.runs(dag) if run.run_id == run_id)

    patiently = Retrying(
        stop=stop_after_delay(60 * MINUTES_FOR_A_RUN),
        wait=wait_fixed(2),
        retry=retry_if_result(lambda run: run.state not in ("success", "failed")),
    )
    with connected(settings) as airflow:
        return str(patiently(look, airflow).state)
