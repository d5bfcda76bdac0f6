"""The checkpoints of the live queries from the form in Airflow's UI (``make demo`` first)."""

from datetime import UTC, datetime

from playwright.sync_api import expect
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed
from tests.browser.forms import Form, ended, show

from lockstep.checkpoints.savepoints import list_savepoints
from lockstep.live import generations, progress

VIEW = "page_views_per_minute"


def carried_out(page, settings, form: Form) -> None:
    """Send the form, see its run succeed, and open what its task says."""
    run_id = form.send()
    assert ended(settings, "checkpoints", run_id) == "success"
    page.goto(f"{settings.airflow_url}/dags/checkpoints/runs/{run_id}/tasks/carry_out")
    show(page, "Grid")


def test_the_queries_are_listed(page, settings, pictures):
    form = Form(page, settings, "checkpoints")
    page.screenshot(path=pictures / "checkpoints-form.png")
    carried_out(page, settings, form)
    generation = generations.get(settings, VIEW).number
    expect(page.get_by_text(f"{VIEW}: generation {generation}, batch").first).to_be_visible()
    page.screenshot(path=pictures / "checkpoints-list.png")


def asked(page, settings, action: str, **fields: str) -> Form:
    """The form, filled in for an action on the view's query."""
    form = Form(page, settings, "checkpoints")
    form.choose("Action", action)
    form.choose("Query", VIEW)
    for label, text in {"Reason": "tried in a browser", **fields}.items():
        form.write(label, text)
    return form


def test_a_savepoint_is_taken_and_restored(page, settings, pictures):
    name = f"browser-{datetime.now(UTC):%H%M%S}"
    form = asked(page, settings, "savepoint", Name=name)
    page.screenshot(path=pictures / "checkpoints-savepoint.png")
    carried_out(page, settings, form)
    expect(page.get_by_text("files saved").first).to_be_visible()
    assert name in [saved.name for saved in list_savepoints(settings, VIEW)]

    before = generations.get(settings, VIEW).number
    carried_out(page, settings, asked(page, settings, "restore", Name=name))
    expect(page.get_by_text(f"generation {before + 1} begins, from savepoint {name}").first).to_be_visible()
    assert generations.get(settings, VIEW).number == before + 1


def test_a_query_is_computed_again_from_the_beginning(page, settings, pictures):
    before = generations.get(settings, VIEW).number
    carried_out(page, settings, asked(page, settings, "reset", To="earliest"))
    expect(page.get_by_text(f"generation {before + 1} begins").first).to_be_visible()
    page.screenshot(path=pictures / "checkpoints-reset.png")
    taken_up = Retrying(
        stop=stop_after_delay(120), wait=wait_fixed(1), retry=retry_if_result(lambda n: n != before + 1)
    )
    assert taken_up(lambda: progress.latest(settings)[VIEW].generation) == before + 1
