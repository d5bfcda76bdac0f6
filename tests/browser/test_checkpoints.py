"""The checkpoints of the live queries from the form in Airflow's UI (``make demo`` first)."""

from datetime import UTC, datetime

from playwright.sync_api import expect
from tests.browser.forms import Form, ended, show

from lockstep.checkpoints import generations, savepoints

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


def test_a_savepoint_is_taken(page, settings, pictures):
    name = f"browser-{datetime.now(UTC):%H%M%S}"
    form = Form(page, settings, "checkpoints")
    form.choose("Action", "savepoint")
    form.choose("Query", VIEW)
    form.write("Name", name)
    form.write("Why", "tried in a browser")
    page.screenshot(path=pictures / "checkpoints-savepoint.png")
    carried_out(page, settings, form)
    expect(page.get_by_text("files saved").first).to_be_visible()
    assert name in [saved.name for saved in savepoints.saved(settings, VIEW)]
