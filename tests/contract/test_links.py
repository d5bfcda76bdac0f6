"""Every link of the documentation leads somewhere, also to the heading that it names."""

import re
from pathlib import Path

import pytest
from tests.support.paths import CHECKOUT

PAGES = [CHECKOUT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")]
PAGES += sorted((CHECKOUT / "docs").rglob("*.md"))


def anchors(page: Path) -> set[str]:
    """The headings of a page, as GitHub makes anchors of them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(CHECKOUT)))
def test_every_link_and_picture_is_there(page: Path) -> None:
    missing = []
    for link in re.findall(r"\]\((?!https?:|mailto:)([^)\s]+)\)", page.read_text()):
        target, _, anchor = link.partition("#")
        file = page.parent / target if target else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            missing.append(link)
    assert missing == []
