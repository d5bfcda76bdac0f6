"""The data docs in a browser without a network. They need no stack: the history of their gates is made up."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from lockstep.quality import docs
from lockstep.quality.checks import Check
from lockstep.quality.outcomes import Outcome
from lockstep.settings import Settings
from lockstep.suite_files import Severity

NEWEST = datetime(2026, 11, 25, 21, tzinfo=UTC)
DEVICE = "expect_column_values_to_be_in_set(column='device', value_set=['desktop', 'mobile', 'tablet'])"
UNIQUE = "expect_column_values_to_be_unique(column='event_id')"


def outcome(table: str, hours_ago: int, odd: int = 0, twice: int = 0) -> tuple[Outcome, str]:
    reasons = [
        f"{DEVICE}: {odd} of 100 rows do not hold, such as ['<b>']",
        f"{UNIQUE}: {twice} of 100 rows do not hold",
    ]
    checks = (
        Check(DEVICE, ("device",), Severity.WARN, not odd, None, odd, 100, reasons[0] if odd else ""),
        Check(UNIQUE, ("event_id",), Severity.FAIL, not twice, None, twice, 100, reasons[1] if twice else ""),
    )
    at = NEWEST - timedelta(hours=hours_ago)
    return Outcome(table, table, checks, 100, f"_offset >= {hours_ago}", 1, at), f"scheduled__{at:%FT%T}+00:00"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = Settings(home=tmp_path_factory.mktemp("home"))
    found = [outcome("silver.page_views", n, odd=n % 5) for n in range(60)]
    found += [outcome("silver.clicks", n, twice=2 if n == 0 else 0) for n in range(30)]
    return docs.rebuild(settings, found).parent


@pytest.fixture(scope="module")
def offline(browser: Browser) -> Page:
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, offline=True)
    opened = context.new_page()
    opened.on("pageerror", lambda error: pytest.fail(f"a script failed: {error}"))
    opened.on("request", lambda asked: asked.url.startswith("file:") or pytest.fail(f"it asked for {asked.url}"))
    return opened


def test_the_index_finds_tables_by_name_and_by_day(offline: Page, site: Path, pictures: Path) -> None:
    offline.goto(f"{site.as_uri()}/index.html")
    expect(offline.get_by_text("one gate is shut")).to_be_visible()
    expect(offline.get_by_role("row").nth(1)).to_contain_text("silver.clicks")
    offline.fill("input[type=search]", "silver.")
    offline.fill("input[type=date]", "2026-11-23")
    expect(offline.get_by_role("link", name="silver.page_views")).to_be_visible()
    expect(offline.get_by_role("link", name="silver.clicks")).to_have_count(0)
    offline.screenshot(path=pictures / "data-docs-index.png")
    offline.get_by_role("link", name="silver.page_views").click()
    expect(offline.get_by_role("heading", name="Runs of 2026-11-23")).to_be_visible()


def test_a_run_that_is_linked_to_is_open_with_its_slice_and_its_checks(
    offline: Page, site: Path, pictures: Path
) -> None:
    offline.goto(f"{site.as_uri()}/tables/silver.clicks.html#scheduled__2026-11-25T21:00:00+00:00")
    chosen = offline.locator("tr.chosen")
    expect(chosen).to_contain_text("_offset >= 0")
    expect(chosen).to_contain_text("2 of 100 rows do not hold")
    expect(offline.get_by_role("heading", name="silver.clicks")).to_contain_text("shut")
    offline.screenshot(path=pictures / "data-docs-run.png")


def test_a_table_shows_the_trend_of_each_expectation_and_values_are_text(
    offline: Page, site: Path, pictures: Path
) -> None:
    offline.goto(f"{site.as_uri()}/tables/silver.page_views.html")
    bars = offline.get_by_role("row").filter(has_text=DEVICE).first.locator("svg.trend rect")
    expect(bars).to_have_count(60)
    expect(bars.and_(offline.locator(".warned"))).to_have_count(48)
    expect(offline.get_by_text("such as ['<b>']").first).to_be_visible()
    offline.screenshot(path=pictures / "data-docs-table.png", full_page=True)
