"""The notebook of docs/examples runs on the demo's stack from its first cell to its last, and draws its chart."""

import nbformat
import pytest
from nbclient import NotebookClient
from tests.support.paths import CHECKOUT

from lockstep.stack.services import environment

NOTEBOOK = CHECKOUT / "docs" / "examples" / "live_equals_batch.ipynb"


@pytest.fixture(scope="module")
def outputs(demo):
    """What the cells show."""
    notebook = nbformat.read(NOTEBOOK, as_version=4)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environment(demo.settings).items():
            patch.setenv(name, value)
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(CHECKOUT)}}).execute()
    return [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]


def test_it_shows_that_live_is_batch(outputs):
    printed = "".join(output.text for output in outputs if output.output_type == "stream" and output.name == "stdout")
    assert "\n0 rows are only live, 0 are only in batch" in printed
    assert "compared until" in printed
    assert ": 0 rows live" not in printed


def texts(outputs):
    return [output["data"]["text/plain"] for output in outputs if "text/plain" in output.get("data", {})]


def test_it_draws_hours_that_are_the_same_in_both_layers(outputs):
    (table,) = (text for text in texts(outputs) if text.startswith("layer"))
    hours = [line.split()[-2:] for line in table.splitlines()[2:]]
    assert len(hours) > 1
    assert [(batch, live) for batch, live in hours if batch != live] == []
    (picture,) = (output["data"]["image/png"] for output in outputs if "image/png" in output.get("data", {}))
    assert len(picture) > 10_000, "more than a frame without lines"


def test_it_is_kept_without_what_a_run_has_shown():
    cells = [cell for cell in nbformat.read(NOTEBOOK, as_version=4).cells if cell.cell_type == "code"]
    assert cells
    assert [cell.id for cell in cells if cell.outputs or cell.execution_count] == []
