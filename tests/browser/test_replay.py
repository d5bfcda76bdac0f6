"""A replay, and its undoing, from the forms in Airflow's UI, as an operator does it (``make demo`` first)."""

from datetime import UTC, datetime, timedelta
from urllib.parse import quote

from playwright.sync_api import expect
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed
from tests.browser.forms import MINUTES_FOR_A_RUN, Form, ended, show

from lockstep import lake, ledger
from lockstep.airflow_api import USER
from lockstep.catalog import connect
from lockstep.replay.record import Replay, replays
from lockstep.status.gather import gather

VIEW = "page_views_per_minute"
NOON = datetime(2026, 11, 10, 12, tzinfo=UTC)


def newest(settings, reason: str) -> Replay | None:
    """The newest replay for a reason."""
    return next((r for r in replays(settings) if r.request.reason == reason), None)


def settled(settings, reason: str, state: str) -> Replay:
    """The replay once it has come to a state."""
    patiently = Retrying(
        stop=stop_after_delay(60 * MINUTES_FOR_A_RUN),
        wait=wait_fixed(2),
        retry=retry_if_result(lambda replay: replay is None or replay.state != state),
    )
    replay = patiently(newest, settings, reason)
    assert replay
    return replay


def counted(settings, start: datetime, end: datetime) -> int:
    """The views that gold has for ``[start, end)``."""
    with connect(settings, "browser") as spark:
        rows = lake.read(spark, settings, f"gold.{VIEW}")
        within = rows.where((rows.window_start >= start) & (rows.window_start < end))
        return int(within.agg({"views": "sum"}).collect()[0][0])


def last_minute(settings, before: datetime) -> datetime:
    """The newest minute before that moment of which gold has views."""
    with connect(settings, "browser") as spark:
        rows = lake.read(spark, settings, f"gold.{VIEW}")
        return rows.where(rows.window_start < before).agg({"window_start": "max"}).collect()[0][0].replace(tzinfo=UTC)


def asks(page, settings, run_id: str) -> None:
    """Wait until the run asks somebody: a page that was opened before does not show it."""
    task = f"{settings.airflow_url}/api/v2/dags/replay/dagRuns/{quote(run_id)}/taskInstances/by_hand"
    patiently = Retrying(
        stop=stop_after_delay(60 * MINUTES_FOR_A_RUN),
        wait=wait_fixed(1),
        retry=retry_if_result(lambda since: not since),
    )
    patiently(lambda: page.request.get(task).json()["start_date"])


def test_a_replay_is_compared_promoted_by_hand_and_undone(page, settings, pictures):
    reason = f"tried in a browser at {datetime.now(UTC):%H.%M.%S}"
    # A day of the demo's history, whose shop is closed at night and on Saturdays; its late rows are what a replay adds.
    end = last_minute(settings, datetime.now(UTC) - timedelta(days=1)) + timedelta(minutes=1)
    start = end - timedelta(days=1)
    before = counted(settings, start, end)

    form = Form(page, settings, "replay")
    form.write("Reason", reason)
    form.pick("From", start)
    form.pick("To (left out itself)", end)
    form.choose("Views", VIEW)
    form.tick("Late rows")
    page.screenshot(path=pictures / "replay-form.png")
    run_id = form.send()

    compared = settled(settings, reason, "compared")
    assert (compared.request.start, compared.request.end, compared.request.views) == (start, end, (VIEW,))
    diff = compared.compared
    assert 0 < diff.changed < diff.windows
    asks(page, settings, run_id)
    page.goto(f"{settings.airflow_url}/dags/replay/runs/{run_id}/tasks/by_hand/required_actions")
    expect(page.get_by_text(f"{diff.changed:,} of {diff.windows:,} windows would change")).to_be_visible()
    expect(page.get_by_text(compared.id)).to_be_visible()
    page.screenshot(path=pictures / "replay-diff.png")

    page.get_by_test_id("hitl-option-Promote").click()
    assert ended(settings, "replay", run_id) == "success"
    promoted = settled(settings, reason, "promoted")
    assert promoted.approved.by == USER
    assert promoted.promoted.versions.keys() == {f"gold.{VIEW}"}
    assert counted(settings, start, end) > before
    page.goto(f"{settings.airflow_url}/dags/replay/runs/{run_id}")
    show(page, "Graph")
    expect(page.locator(".react-flow__node").first).to_be_visible()
    page.screenshot(path=pictures / "replay-graph.png")

    form = Form(page, settings, "replay_undo")
    form.write("Replay", promoted.id)
    page.screenshot(path=pictures / "replay-undo-form.png")
    run_id = form.send()
    assert ended(settings, "replay_undo", run_id) == "success"
    assert settled(settings, reason, "undone").id == promoted.id
    assert counted(settings, start, end) == before


def test_what_a_version_brought_is_redone_and_approved_by_the_rule(page, settings, pictures):
    reason = f"by the rule at {datetime.now(UTC):%H.%M.%S}"
    brought = ledger.latest(settings, "bronze.page_views")
    form = Form(page, settings, "replay")
    form.write("Reason", reason)
    form.choose("Views", VIEW)
    form.choose("Approved by", "The rule below")
    form.open("Instead of a time")
    form.write("Versions", f"bronze.page_views@{brought.version}..{brought.version}")
    page.screenshot(path=pictures / "replay-by-rule.png")
    run_id = form.send()
    assert ended(settings, "replay", run_id) == "success"
    promoted = settled(settings, reason, "promoted")
    assert promoted.approved.by == "rule"
    assert promoted.compared.changed == 0


def refused(page, settings, sentence: str, reason: str, start: datetime, end: datetime) -> None:
    """Send such a form, and see its run end with the sentence on its page."""
    form = Form(page, settings, "replay")
    form.write("Reason", reason)
    form.pick("From", start)
    form.pick("To (left out itself)", end)
    run_id = form.send()
    assert ended(settings, "replay", run_id) == "failed"
    page.goto(f"{settings.airflow_url}/dags/replay/runs/{quote(run_id)}/plugin/tables")
    line = page.frame_locator("iframe[title=Tables]").get_by_role("row").filter(has_text=sentence)
    expect(line.locator(".outcome")).to_have_text("refused")
    assert newest(settings, reason) is None
    assert not [problem for problem in gather(settings, {}).problems if problem.key == "dag-failed:replay"]


def test_a_form_whose_dates_end_before_they_start_is_refused(page, settings, pictures):
    later = NOON + timedelta(hours=1)
    refused(page, settings, "must be later than from", "the dates are the wrong way round", later, NOON)
    page.screenshot(path=pictures / "replay-refused.png")


def test_jinja_in_the_reason_is_stored_as_it_is_and_never_rendered(page, settings):
    reason = "{{ 6 * 7 }} {{ conf.get('database', 'sql_alchemy_conn') }} " + f"{datetime.now(UTC):%H.%M.%S}"
    brought = ledger.latest(settings, "bronze.page_views")
    form = Form(page, settings, "replay")
    form.write("Reason", reason)
    form.choose("Views", VIEW)
    form.tick("Dry run")
    form.open("Instead of a time")
    form.write("Versions", f"bronze.page_views@{brought.version}..{brought.version}")
    assert ended(settings, "replay", form.send()) == "success"
    assert settled(settings, reason, "discarded").request.reason == reason
    assert not any(replay.request.reason.startswith("42 ") for replay in replays(settings))
