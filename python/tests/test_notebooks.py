"""Notebooks of the documentation run as they are."""

import html
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[2] / "docs/notebooks"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_notebook_runs(path, tmp_path):
    notebook = nbformat.read(path, as_version=4)
    assert all(not cell.get("outputs") for cell in notebook.cells), "notebooks are kept without results"
    done = NotebookClient(notebook, timeout=240, resources={"metadata": {"path": tmp_path}}).execute()
    shown = [output for cell in done.cells for output in cell.get("outputs", [])]
    pages = [one.data["text/html"] for one in shown if "text/html" in one.get("data", {})]
    reports = [page for page in pages if "<svg" in html.unescape(page)]
    assert len(reports) == 2, "either side's report shows its page"
    texts = [page for page in pages if page.startswith("<pre>")]
    assert len(texts) >= 2 and "party.run(data)" in " ".join(texts), (
        "the simulation and the check show theirs"
    )
