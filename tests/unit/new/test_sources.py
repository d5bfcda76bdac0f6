"""A table is added to dbt's sources, and no other byte of the file changes."""

import pytest
from tests.support.paths import CHECKOUT

from lockstep.dictionary import Column, Table
from lockstep.new.make import SOURCES
from lockstep.new.sources import with_tables

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


def with_table(text: str, source: str, name: str, description: str, *columns: Column) -> str:
    return with_tables(text, [Table(f"{source}.{name}", description, columns)])


def check(text: str, source: str, name: str, before: str, table: str, after: str) -> None:
    """The table stands between these texts, which follow one another now; all else is as it was."""
    assert text.count(before + after) == 1
    assert with_table(text, source, name, "New.") == text.replace(before + after, before + table + after)


@pytest.mark.parametrize(
    ("source", "name", "before", "after"),
    [
        ("silver", "aaa", "    tables:\n", "      - name: account_events\n"),
        ("silver", "messages", "null: there are none.'\n", "      - name: order_lines\n"),
        ("silver", "visits", "its Kafka timestamp.'\n", "\n  - name: gold\n"),
        ("gold", "aaa", "    tables:\n", "      - name: account_balances\n"),
        ("gold", "zzz", "The number of the other product.\n", ""),
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


COLUMNS = (Column("order_id", "STRING", "The number."), Column("lines", "INT", "Pieces."), Column("bare", "INT"))


def test_the_columns_of_a_table_that_is_there_are_described_and_all_else_stays() -> None:
    before = f"""\
  - name: orders  # with cancellations
    description: "{"long " * 50}"
    columns:
    - name: order_id
      data_tests: [not_null, unique]  # both

# what"""
    after = """\
  - name: orders  # with cancellations
    description: "New."
    columns:
    - name: order_id
      description: The number.
      data_tests: [not_null, unique]  # both
    - name: lines
      description: Pieces.

# what"""
    assert before in FOREIGN
    written = with_table(FOREIGN, "silver", "orders", "New.", *COLUMNS)
    assert written == FOREIGN.replace(before, after)
    assert with_table(written, "silver", "orders", "New.", *COLUMNS) == written


def test_a_new_table_comes_with_its_columns() -> None:
    table = "  tables:\n  - name: first\n    description: New.\n    columns:\n    - name: order_id\n"
    table += "      description: The number.\n    - name: lines\n      description: Pieces.\n"
    assert with_table(FOREIGN, "empty", "first", "New.", *COLUMNS) == FOREIGN.replace("  tables: []\n", table)


def test_what_nobody_has_described_keeps_its_words() -> None:
    assert with_table(FOREIGN, "silver", "clicks", "") == FOREIGN


def test_a_text_whose_lines_are_broken_elsewhere_is_left_alone() -> None:
    folded = FOREIGN.replace("description: |\n      Literal", "description: >\n      Literal")
    assert with_table(folded, "gold", "sums", "Literal text.") == folded
