"""`geneb-ci matrices` as a user runs it: formats, regimes, what cannot be recovered."""

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from geneb_ci.cli.main import main
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.render.rows import MATRIX_COLUMNS, formula_safe
from tests.paths import SUBMISSIONS
from tests.rules.fixtures import fixture
from tests.rules.place import built

SPACE = str(SUBMISSIONS / "space.json")
TWO_CLASSES = [t for t in shipped_benchmark().tasks if t.test_class_counts]


def seeds_fixture(tmp_path: Path, rule: str = "wrong-seed-mean", verdict: str = "pass") -> str:
    files = fixture(f"{rule}/{verdict}")
    assert isinstance(files, dict)
    return str(built(files, tmp_path) / "submissions/model.json")


def test_csv_has_a_line_for_each_two_class_cell_whose_counts_add_up(capsys):
    assert main(["matrices", SPACE, "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["task"] for row in rows] == [task.id for task in TWO_CLASSES]
    assert list(rows[0]) == list(MATRIX_COLUMNS)
    for row, task in zip(rows, TWO_CLASSES, strict=True):
        counts = [
            int(row[f"{side}_right"]) + int(row[f"{side}_wrong"]) for side in ("small", "large")
        ]
        assert counts == task.test_class_counts
        assert row["matrices"] == "1"


def test_json_lists_every_table(capsys):
    assert main(["matrices", SPACE, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    published = json.loads((SUBMISSIONS / "space.json").read_bytes())["results"]["full"]
    for row in rows:
        assert len(row["tables"]) == row["matrices"] == 1
        assert {m: row[m] for m in ("MCC", "Acc", "F1")} == pytest.approx(
            published[row["task"]], abs=1e-14
        )


def test_text_is_aligned_and_counts_the_cells(capsys):
    assert main(["matrices", SPACE, "--all"]) == 0
    head, *lines, blank, tail = capsys.readouterr().out.splitlines()
    assert head.split("  ")[0] == "task"
    assert len(lines) == 91
    assert blank == ""
    assert tail == "91 cells: 91 with one matrix, 0 with none"


def test_seeds_of_a_mean_are_taken_where_they_are_given(tmp_path, capsys):
    path = seeds_fixture(tmp_path)
    assert main(["matrices", path, "--regime", "10shot", "--format", "csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    tata = [row["seed"] for row in rows if row["task"] == "promoter_tata"]
    assert tata == ["13", "17", "42", "123", "997"]


def test_a_cell_without_a_matrix_is_shown_and_exits_11(tmp_path, capsys):
    path = seeds_fixture(tmp_path, "impossible-scores", "fail")
    assert main(["matrices", path]) == 11
    assert "2 cells: 1 with one matrix, 1 with none" in capsys.readouterr().out
    assert main(["matrices", path, "--format", "csv"]) == 11
    row = next(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert (row["matrices"], row["small_right"], row["MCC"]) == ("0", "", "")


def test_rounded_scores_leave_several(tmp_path, capsys):
    path = seeds_fixture(tmp_path, "rounded-scores", "fail")
    assert main(["matrices", path, "--format", "json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["matrices"] for row in rows] == [1, 6]
    assert [len(row["tables"]) for row in rows] == [1, 6]


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (
            ["--regime", "1shot"],
            3,
            '"1shot" has no two-class task with the scores of one trained probe',
        ),
        (["--regime", "5shot"], 2, '"5shot" is not a regime of GENEB'),
        (["--output", "no/such/folder"], 2, "no/such/folder: cannot be written"),
    ],
)
def test_what_cannot_be_done_is_said(arguments, code, message, capsys):
    assert main(["matrices", SPACE, *arguments]) == code
    assert message in capsys.readouterr().err


def test_output_goes_to_a_file(tmp_path, capsys):
    target = tmp_path / "matrices.csv"
    assert main(["matrices", SPACE, "--format", "csv", "--output", str(target)]) == 0
    assert capsys.readouterr().out == ""
    assert len(target.read_text(encoding="utf-8").splitlines()) == 92


def test_a_file_that_says_nothing_is_not_a_clean_result(tmp_path, capsys):
    path = tmp_path / "broken.json"
    path.write_text("{", encoding="utf-8")
    assert main(["matrices", str(path)]) == 3
    shutil.copy(SPACE, tmp_path)
    assert main(["matrices", str(tmp_path / "space.json")]) == 0
    capsys.readouterr()


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\tx", "\rx"])
def test_a_text_is_no_formula(text):
    assert formula_safe(text) == f"'{text}"
    assert formula_safe(-0.5) == -0.5
    assert formula_safe(None) == ""
