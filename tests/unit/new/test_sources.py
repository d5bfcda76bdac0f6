"""A table is added to dbt's sources, and no other byte of the file changes."""

import pytest
from tests.support.paths import CHECKOUT

from lockstep.new.make import SOURCES
from lockstep.new.sources import with_table

OURS = (CHECKOUT / SOURCES).read_text()
# Quotes, comments, flow style, a list without an indent, and a line that no width would keep.
FOREIGN = f"""\
---
# of the team
version: 2

sources:
- name: "silver"   # parsed
  tables:
  - {{name: clicks, description: 'Clicks.'}}
  # the oldest of all
  - name: orders  # with cancellations
    description: "{"long " * 50}"
    columns:
    - name: order_id
      data_tests: [not_null, unique]  # both

# what the views say
- name: gold
  description: >
    Folded
    text.
  tables:
  - name: sums
    description: |
      Literal
      text.

  # the end
- name: empty
  tables: []
- name: none
"""


def check(text: str, source: str, name: str, before: str, table: str, after: str) -> None:
    """The table stands between these texts, which follow one another now; all else is as it was."""
    assert text.count(before + after) == 1
    assert with_table(text, source, name, "New.") == text.replace(before + after, before + table + after)


@pytest.mark.parametrize(
    ("source", "name", "before", "after"),
    [
        ("silver", "aaa", "    tables:\n", "      - name: clicks\n"),
        ("silver", "messages", "whether they succeeded.\n", "      - name: order_lines\n"),
        ("silver", "visits", "e-mail addresses are tokens.\n", "\n  - name: gold\n"),
        ("gold", "aaa", "    tables:\n", "      - name: activity_within_five_minutes\n"),
        ("gold", "zzz", 'in one visit."\n', ""),
    ],
)
def test_our_own_sources_get_two_lines(source, name, before, after):
    check(OURS, source, name, before, f"      - name: {name}\n        description: New.\n", after)


@pytest.mark.parametrize(
    ("source", "name", "before", "after"),
    [
        ("silver", "errors", "'Clicks.'}\n", "  # the oldest of all\n  - name: orders  # with"),
        ("silver", "zzz", "unique]  # both\n", "\n# what the views say\n"),
        ("gold", "alerts", "    text.\n  tables:\n", "  - name: sums\n"),
        ("gold", "zzz", "      text.\n", "\n  # the end\n- name: empty\n"),
    ],
)
def test_another_projects_sources_keep_their_style(source, name, before, after):
    check(FOREIGN, source, name, before, f"  - name: {name}\n    description: New.\n", after)


def test_the_first_table_of_a_source():
    table = "  tables:\n  - name: first\n    description: New.\n"
    assert with_table(FOREIGN, "empty", "first", "New.") == FOREIGN.replace("  tables: []\n", table)
    assert with_table(FOREIGN, "none", "first", "New.") == FOREIGN + table


def test_a_source_that_is_not_there_is_refused():
    with pytest.raises(KeyError, match="bronze"):
        with_table(OURS, "bronze", "new", "New.")


def test_a_description_that_is_no_plain_text_is_quoted():
    assert "description: 'New: it is #1'" in with_table(OURS, "gold", "new", "New: it is #1")
