"""A replay from the form in Airflow's UI, as an operator runs it (``make demo`` first)."""

from datetime import UTC, datetime, timedelta

from playwright.sync_api import expect
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from lockstep import lake
from lockstep.airflow import connected
from lockstep.replay.record import Replay, replays

VIEW = "page_views_per_minute"
MINUTES_FOR_A_RUN = 10


def newest(settings, reason: str) -> Replay | None:
    """The newest replay for a reason."""
    return next((r for r in replays(settings) if r.request.reason == reason), None)


def settled(settings, reason: str, state: str) -> Replay:
    """The replay once it has come to a state."""
    patiently = Retrying(
        stop=stop_after_delay(60 * MINUTES_FOR_A_RUN),
        wait=wait_fixed(2),
        retry=retry_if_result(lambda found: found is None or found.state != state),
    )
    found = patiently(newest, settings, reason)
    assert found
    return found


def open_form(page, settings) -> None:
    page.goto(f"{settings.airflow_url}/dags/replay")
    page.get_by_role("button", name="Trigger").first.click()
    expect(page.locator("#element_reason")).to_be_visible()


def choose(page, field: str, *options: str) -> None:
    """Pick options in a drop-down that takes several."""
    for option in options:
        page.locator(f"#element_{field} input").first.fill(option)
        page.keyboard.press("Enter")


def trigger(page) -> None:
    page.get_by_role("dialog").get_by_role("button", name="Trigger").last.click()


def test_a_replay_is_filled_in_compared_and_promoted_by_hand(page, settings, pictures):
    reason = f"tried in a browser at {datetime.now(UTC):%H.%M.%S}"
    end = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    open_form(page, settings)
    page.locator("#element_reason").fill(reason)
    page.locator("#element_from").fill(f"{end - timedelta(hours=12):%FT%T}")
    page.locator("#element_to").fill(f"{end:%FT%T}")
    choose(page, "views", VIEW)
    page.screenshot(path=pictures / "replay-form.png")
    trigger(page)
    compared = settled(settings, reason, "compared")
    with connected(settings) as airflow:
        run = next(r for r in airflow.runs("replay") if r.state in ("running", "queued"))
    page.goto(f"{settings.airflow_url}/dags/replay/runs/{run.run_id}/tasks/by_hand/required_actions")
    expect(page.get_by_text("windows would change")).to_be_visible()
    page.screenshot(path=pictures / "replay-diff.png")
    page.get_by_test_id("hitl-option-Promote").click()
    promoted = settled(settings, reason, "promoted")
    assert promoted.id == compared.id
    versions = promoted.stages["promoted"]["versions"]
    assert versions.keys() <= {f"gold.{VIEW}"}
    assert all(next(lake.commits(settings, table)).version >= version for table, version in versions.items())
    page.goto(f"{settings.airflow_url}/dags/replay/runs/{run.run_id}")
    page.get_by_role("button", name="Graph").or_(page.get_by_label("Show Graph")).first.click()
    expect(page.locator(".react-flow__node").first).to_be_visible()
    page.screenshot(path=pictures / "replay-graph.png")


def test_jinja_in_the_form_is_refused_and_never_rendered(page, settings, pictures):
    open_form(page, settings)
    page.locator("#element_reason").fill("{{ 6 * 7 }} {{ conf.get('database', 'sql_alchemy_conn') }}")
    page.locator("#element_from").fill("2026-11-10T00:00")
    page.locator("#element_to").fill("2026-11-11T00:00")
    trigger(page)

    def failed():
        with connected(settings) as airflow:
            return next((r for r in airflow.runs("replay") if r.state == "failed"), None)

    run = Retrying(stop=stop_after_delay(120), wait=wait_fixed(2), retry=retry_if_result(lambda r: r is None))(failed)
    page.goto(f"{settings.airflow_url}/dags/replay/runs/{run.run_id}/tasks/plan")
    expect(page.get_by_text("looks like Jinja, and is refused").first).to_be_visible()
    page.screenshot(path=pictures / "replay-refused.png")
    assert not any("42" in r.request.reason for r in replays(settings))
