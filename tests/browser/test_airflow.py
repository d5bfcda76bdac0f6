"""Airflow's own pages, as an operator sees them."""

import re
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import pytest
from playwright.sync_api import FrameLocator, expect
from tests.browser.forms import Backfill, show

from lockstep.airflow_api import connected

DAGS = (
    "ingest",
    "refine",
    "marts",
    "reconcile",
    "rollup_daily",
    "maintain",
    "replay",
    "replay_undo",
    "checkpoints",
    "erase",
)


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


def tables(page, settings, dag: str, run_id: str) -> FrameLocator:
    """The tab of a run's page with what became of each table."""
    page.goto(f"{settings.airflow_url}/dags/{dag}/runs/{quote(run_id)}/plugin/tables")
    frame = page.frame_locator("iframe[title=Tables]")
    expect(frame.get_by_role("row").nth(1)).to_be_visible()
    return frame


@pytest.mark.parametrize(
    ("dag", "table"),
    [
        ("ingest", "bronze.page_views"),
        ("refine", "gold.page_views_per_minute"),
        ("reconcile", "serving.page_views_per_minute"),
    ],
)
def test_the_page_of_a_run_has_a_line_for_each_table(dag, table, page, settings, pictures):
    with connected(settings) as airflow:
        run = next(r for r in airflow.runs(dag) if r.state == "success")
    line = tables(page, settings, dag, run.run_id).get_by_role("row").filter(has_text=table).first
    expect(line.locator(".outcome")).to_have_text(re.compile("^(done|nothing new|late)$"))
    page.screenshot(path=pictures / f"{dag}-tables.png")


def test_a_backfill_computes_the_days_that_its_form_names(page, settings, pictures):
    newest = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=2)
    days = [newest - timedelta(days=1), newest]
    runs = f"{settings.airflow_url}/api/v2/dags/rollup_daily/dagRuns"

    def states() -> dict[str, str]:
        found = page.request.get(
            runs, params={"logical_date_gte": days[0].isoformat(), "logical_date_lte": newest.isoformat()}
        )
        return {run["dag_run_id"]: run["state"] for run in found.json()["dag_runs"]}

    def asked(behaviour: str) -> Backfill:
        form = Backfill(page, settings, "rollup_daily")
        form.pick("From", days[0])
        form.pick("To", newest)
        form.reprocess(behaviour)
        form.at_once(2)
        return form

    # They may have a run: this test has run on the stack before.
    for run_id in states():
        assert page.request.delete(f"{runs}/{quote(run_id)}").ok
    form = asked("Missing Runs")
    expect(form.dialog.get_by_text("2 runs will be triggered.")).to_be_visible()
    page.screenshot(path=pictures / "backfill-form.png")
    form.run(2)
    assert list(states().values()) == ["success", "success"]

    failed = max(states())
    assert page.request.patch(f"{runs}/{quote(failed)}", data={"state": "failed"}).ok
    asked("Missing and Errored Runs").run(1)
    assert list(states().values()) == ["success", "success"]

    asked("All Runs").run(2)
    assert list(states().values()) == ["success", "success"]
    gold = (
        tables(page, settings, "rollup_daily", failed).get_by_role("row").filter(has_text="gold.page_views_per_minute")
    )
    expect(gold).to_contain_text(f"{newest:%F} is computed again")
    page.screenshot(path=pictures / "rollup-daily-tables.png")


def test_the_page_of_rollup_daily_says_what_a_backfill_of_it_does(page, settings, pictures):
    page.goto(f"{settings.airflow_url}/dags/rollup_daily")
    page.get_by_role("button", name="Dag Docs").click()
    for behaviour in ("Missing Runs", "Missing and Errored Runs", "All Runs"):
        expect(page.get_by_role("cell", name=behaviour, exact=True)).to_be_visible()
    page.screenshot(path=pictures / "rollup-daily-docs.png")


@pytest.mark.parametrize(
    ("box", "said"),
    [
        ("run", "(OK created sql incremental model marts_built.daily_orders|dbt had nothing to do)"),
        ("test", "(PASS holds_daily_orders|dbt ran no test of it)"),
    ],
)
def test_each_box_of_a_mart_has_a_log_of_its_own(box, said, page, settings, pictures):
    with connected(settings) as airflow:
        run = next(r for r in airflow.runs("marts") if r.state == "success")
    page.goto(f"{settings.airflow_url}/dags/marts/runs/{quote(run.run_id)}/tasks/marts.daily_orders.{box}")
    expect(page.get_by_text("MartTask").first).to_be_visible()
    expect(page.get_by_text(re.compile(said)).first).to_be_visible()
    page.screenshot(path=pictures / f"marts-daily-orders-{box}.png")


def test_the_data_docs_are_a_link_away_from_the_gate_of_a_table(page, settings, pictures):
    page.goto(f"{settings.airflow_url}/lockstep-docs/data_docs/index.html")
    page.get_by_role("link", name="silver.page_views", exact=True).click()
    expect(page.get_by_role("heading", name="Expectations")).to_be_visible()
    expect(page.get_by_text("expect_column_values_to_not_be_null(column='event_id')").first).to_be_visible()
    page.screenshot(path=pictures / "data-docs.png")


def test_the_pages_of_dbt_and_the_data_docs_lead_to_each_other(page, settings, pictures):
    page.goto(f"{settings.airflow_url}/lockstep-docs/dbt_docs/index.html")
    expect(page.get_by_role("heading", name="Welcome!")).to_be_visible()
    page.screenshot(path=pictures / "dbt-docs.png")
    page.get_by_role("link", name="Data docs", exact=True).click()
    expect(page.get_by_role("heading", name="Data docs")).to_be_visible()
    page.get_by_role("link", name="dbt docs", exact=True).click()
    expect(page).to_have_url(f"{settings.airflow_url}/lockstep-docs/dbt_docs/index.html#!/overview")
