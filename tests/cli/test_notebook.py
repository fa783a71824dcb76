"""The notebook of docs/developer runs as it stands, and is kept without what it shows."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.paths import ROOT

pytestmark = pytest.mark.nightly

FOLDER = ROOT / "docs/developer"
NOTEBOOK = "read-the-board.ipynb"
RUN = """
import sys
cells = sys.stdin.read().split("\\0")
names = {}
for number, cell in enumerate(cells, 1):
    exec(compile(cell, f"cell {number}", "exec"), names)
axes = names["figure"].axes
print(len(axes), [len(axis.lines) for axis in axes])
"""


def cells() -> list[dict[str, Any]]:
    own: list[dict[str, Any]] = json.loads((FOLDER / NOTEBOOK).read_bytes())["cells"]
    return [cell for cell in own if cell["cell_type"] == "code"]


def test_each_cell_runs_in_the_folder_of_the_notebook(tmp_path):
    sources = ["".join(cell["source"]) for cell in cells()]
    variables = {"MPLBACKEND": "Agg", "MPLCONFIGDIR": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", RUN],
        input="\0".join(sources), cwd=FOLDER, env=os.environ | variables,
        capture_output=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    *_, plotted = done.stdout.splitlines()
    assert plotted == "2 [30, 30]", "15 models: an interval and a point each"
    assert " MCC, 95 % interval " in done.stdout


def test_it_is_kept_without_outputs():
    assert [cell for cell in cells() if cell["outputs"] or cell["execution_count"]] == []
