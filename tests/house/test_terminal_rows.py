"""Commands on real rows, where they succeed: their tables fit the terminal as well, in 60 lines."""

import json
import sys

import pytest
from rich.cells import cell_len

from geneb_ci.render.text import REPORT_LINES_MAX
from tests.gate import gated
from tests.git import board_of_rows
from tests.house.test_terminal import COLUMNS, TERMINAL, is_data, run

ROWS = ("GROVER", "space", "gena-lm-bert-base")
ROW = "submissions/GROVER.json"
NAMED = "--model-id x --display X --params 5"
CASES = (
    *(("check", 0), ("trust", 0), (f"matrices {ROW}", 0), ("figures", 0), ("ledger", 0)),
    ("findings --figure hard-tasks", 0),
    ("build --output built", 0),
    ("recommend --category Promoters", 0),
    ("recommend --category Promoters --evidence audited", 3),
    ("recommend --margin 0.03 --max-params 500M", 0),
    *(("explain GROVER", 0), ("explain wrong-matrix-size", 0), ("diff --base main~1", 0)),
    *(
        ("export --format csv --output tables", 0),
        ("export --format eval-results --output results", 0),
    ),
    *((f"import logs {NAMED} --output from-logs.json", 11), (f"pack logs {NAMED}", 11)),
    (f"audit {ROW} --unsigned --dry-run", 2),
    *(
        ("init board --repo org/board --maintainers @a --alone --dry-run", 0),
        ("models show GROVER", 0),
    ),
    *(("data pull out --tasks nothing", 2), ("publish --space a/b --expect other", 1)),
)


@pytest.fixture(scope="module")
def repository_folder(tmp_path_factory):
    """Make a board of public rows, of which one came later, and a folder of upstream's logs."""
    root = tmp_path_factory.mktemp("wide")
    board_of_rows(root, *ROWS)
    (root / "logs").mkdir()
    cells = json.loads((root / ROW).read_bytes())["results"]["full"]
    for task, cell in list(cells.items())[:5]:
        names_and_values = zip(("mcc", "accuracy", "f1_score"), cell.values(), strict=True)
        log = {name: {"mean": value} for name, value in names_and_values}
        (root / f"logs/results_x_{task}_y.json").write_text(json.dumps(log))
    return root


LONG = ("build --output built", "export --format eval-results --output results")
"""Commands of most of a second, of which tests/house/test_terminal.py has others by day."""


@pytest.mark.parametrize(
    ("words", "code"), gated(CASES, *(case for case in CASES[::2] if case[0] not in LONG))
)
def test_output_of_real_rows_fits_the_terminal(repository_folder, words, code, monkeypatch, capfd):
    monkeypatch.chdir(repository_folder)
    monkeypatch.setattr(sys, "argv", sys.argv)
    for name, value in TERMINAL.items():
        monkeypatch.setenv(name, value)
    program = "geneb-harness" if words.startswith("data ") else "geneb-ci"
    output = run(program, words)
    shown = capfd.readouterr()
    lines = (shown.out + shown.err).splitlines()
    assert len(lines) <= REPORT_LINES_MAX
    assert [line for line in lines if cell_len(line) > COLUMNS and not is_data(line)] == []
    assert "\x1b" not in shown.out + shown.err
    assert lines
    assert output == code, shown.err
