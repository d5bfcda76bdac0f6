"""Airflow's own pages, as an operator sees them."""

import pytest
from playwright.sync_api import expect
from tests.browser.forms import show

from lockstep.airflow_api import connected

DAGS = ("ingest", "refine", "marts", "reconcile", "rollup_daily", "maintain", "replay", "replay_undo", "checkpoints")


def test_the_list_shows_every_dag_and_no_import_error(page, settings, pictures):
    page.goto(f"{settings.airflow_url}/dags")
    for dag in DAGS:
        expect(page.get_by_role("link", name=dag, exact=True).first).to_be_visible()
    expect(page.get_by_text("Dag Import Error")).to_have_count(0)
    page.screenshot(path=pictures / "dags.png")


@pytest.mark.parametrize("dag", ["ingest", "refine", "reconcile"])
def test_the_graph_of_a_run_can_be_read(dag, page, settings, pictures):
    with connected(settings) as airflow:
        run = next(r for r in airflow.runs(dag) if r.state == "success")
    page.goto(f"{settings.airflow_url}/dags/{dag}/runs/{run.run_id}")
    expect(page.get_by_text(run.run_id).first).to_be_visible()
    show(page, "Graph")
    expect(page.locator(".react-flow__node").first).to_be_visible()
    page.screenshot(path=pictures / f"{dag}-graph.png")


def test_the_backfill_form_opens_for_past_days(page, settings, pictures):
    page.goto(f"{settings.airflow_url}/dags/rollup_daily")
    page.get_by_role("button", name="Trigger").first.click()
    page.get_by_text("Backfill", exact=True).first.click()
    expect(page.get_by_text("Reprocessing Behaviour").or_(page.get_by_text("Reprocess")).first).to_be_visible()
    page.screenshot(path=pictures / "backfill-form.png")


def test_the_data_docs_can_be_read(page, settings, pictures):
    # The index fills its table with scripts from the web; the pages of the suites stand by themselves.
    page.goto(f"file://{settings.home}/data_docs/expectations/silver/page_views.html")
    expect(page.get_by_text("event_id").first).to_be_visible()
    page.screenshot(path=pictures / "data-docs.png")
