"""What Airflow is told of the tables that a task has written."""

from pathlib import Path

from tests.support.dag_scripts import told_by


def test_a_task_emits_an_event_for_each_table_that_its_run_has_written_and_for_no_other(tmp_path: Path) -> None:
    told = told_by("emit", tmp_path)
    assert told == {"bronze.page_views": {"version": 1, "rows": 4, "offsets": {"page_views": {"0": [0, 4]}}}}
