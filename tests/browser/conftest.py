"""A logged-in page of the Airflow of the stack that runs now (``make demo`` first), in Debian's Chromium."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.support.paths import CHECKOUT

from lockstep import settings as configuration
from lockstep.settings import Settings

CHROMIUM = "/usr/bin/chromium"
# Without these, Chromium asks for its maker's hosts at every start.
QUIET = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--disable-sync"]
PATIENCE = 30_000  # milliseconds: the first page after a start loads all of Airflow's scripts


@pytest.fixture(scope="session")
def settings() -> Settings:
    return configuration.load()


@pytest.fixture(scope="session")
def pictures() -> Path:
    """Where the pictures go that a person then looks at."""
    directory = CHECKOUT / "artifacts" / "browser"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def page(browser: Browser, settings: Settings) -> Page:
    return logged_in(browser, settings)


def logged_in(browser: Browser, settings: Settings) -> Page:
    """A page of Airflow's UI, as an operator has it after the login."""
    opened = browser.new_page(viewport={"width": 1500, "height": 950}, locale="en-GB")
    opened.set_default_timeout(PATIENCE)
    expect.set_options(timeout=PATIENCE)
    opened.goto(settings.airflow_url)
    opened.fill("input[name=username]", "admin")
    opened.fill("input[name=password]", settings.airflow_password.get_secret_value())
    opened.click("button[type=submit]")
    opened.wait_for_url(lambda url: "/auth" not in url and "/login" not in url)
    return opened
