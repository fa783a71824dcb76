"""The board: published figures, upstream's shape, stable bytes, nothing half-written."""

import array
import hashlib
import json
import math
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from geneb_ci.board.board import is_built_board
from geneb_ci.board.means import mean
from geneb_ci.board.page import FIXED_FILES
from geneb_ci.board.rows import InvalidBoard, board_file_bytes, extra_required, leaderboards
from geneb_ci.cli.main import main
from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.errors import MachineFault, UsageProblem
from geneb_ci.common.files import write_files
from geneb_ci.statistics.metrics import PackedNumbers
from reference_harness.formats.submission import SubmissionV10
from tests import forked
from tests.board.board import entries, entry
from tests.cli.test_plain_install import EXTRAS
from tests.each import each
from tests.page.boards import name_of
from tests.paths import PUBLIC, ROOT, SUBMISSIONS


@pytest.fixture(scope="module")
def board():
    return leaderboards(entries(), shipped_benchmark())


def test_a_missing_package_of_the_extra_is_told_and_another_is_a_bug():
    with pytest.raises(UsageProblem) as refusal, extra_required("; or do without"):
        raise ModuleNotFoundError("No module named 'numpy'", name="numpy")
    assert (refusal.value.message, refusal.value.fix) == (
        "numpy is not installed, and the board's analyses need it",
        'pip install "geneb-ci[build]"; or do without',
    )
    with pytest.raises(ModuleNotFoundError), extra_required():
        raise ModuleNotFoundError("No module named 'geneb_ci.x'", name="geneb_ci.x")


def test_a_built_board_is_told_from_a_repository_that_has_one(tmp_path):
    repository, inside, alone = (tmp_path / name for name in ("r", "r/built", "alone"))
    (repository / "submissions").mkdir(parents=True)
    (repository / "schemas").mkdir()
    shutil.copy(ROOT / "schemas/benchmark.json", repository / "schemas")
    for folder in (inside, alone):
        folder.mkdir()
    assert not any(map(is_built_board, (None, repository, inside, alone)))
    for folder in (repository, inside, alone):
        (folder / "leaderboard.json").write_text("{}", encoding="utf-8")
    assert [is_built_board(folder) for folder in (repository, inside, alone)] == [False, True, True]


def test_rows_have_upstreams_keys_in_upstreams_order(board):
    categories, tasks = board
    assert list(categories) == ["data"]
    assert list(categories["data"]) == ["full", "10shot", "1shot"]
    upstreams = [
        *("model", "disp", "params", "official", "zero_shot", "submitted"),
        *("micro_MCC", "macro_MCC", "cat_MCC"),
        *("micro_Acc", "macro_Acc", "cat_Acc"),
        *("micro_F1", "macro_F1", "cat_F1"),
    ]
    # Rows may have keys of ours beside upstream's.
    assert [key for key in categories["data"]["full"][0] if key in upstreams] == upstreams
    assert list(tasks) == ["tasks", "data"]
    assert tasks["tasks"][0] == {
        "id": "InstaDeepAI_nucleotide_transformer_downstream_tasks_H3",
        "label": "NT H3",
        "cat": "Histone Mod.",
        "classes": 2,
    }
    upstreams = [
        *("model", "disp", "params"),
        *("micro_MCC", "macro_MCC", "task_MCC"),
        *("micro_Acc", "macro_Acc", "task_Acc"),
        *("micro_F1", "macro_F1", "task_F1"),
    ]
    assert [key for key in tasks["data"]["1shot"][0] if key in upstreams] == upstreams


def test_rows_stand_in_the_order_of_lower_case_ids(board):
    names = [row["model"] for row in board[0]["data"]["full"]]
    assert len(names) == 41
    assert names == sorted(names, key=str.lower)


def test_levels_are_computed_from_digests(board):
    levels = {row["model"]: (row["official"], row["submitted"]) for row in board[0]["data"]["full"]}
    assert levels.pop("splicebert-1024nt") == (False, "self-reported")
    assert set(levels.values()) == {(True, "official")}


def test_the_order_of_the_files_changes_no_byte(board):
    again = leaderboards(reversed(entries()), shipped_benchmark())
    for name, first, other in zip(
        ("leaderboard.json", "leaderboard_tasks.json"), board, again, strict=True
    ):
        assert board_file_bytes(name, first) == board_file_bytes(name, other)


DIGESTS = Path(__file__).with_name("golden") / "board.sha256"
# Of the 41 public submissions; test_columns.py holds that they are right.
BYTES = {name: digest for digest, name in map(str.split, DIGESTS.read_text("utf-8").splitlines())}

TABLE_FILES = {
    "values.csv": "cdaca6f1104f550ab1811350b8df77eda92fd2a118e3cd42507a4022e43af1e8",
    "values.parquet": "e2fc91525f6a72a0c1dd587318406ada7ac1b939b1dca55307ce3ce2151b126c",
    "codebook.json": "",
}
"""Every score of them as a table, with its error; what says what is in it has no fixed digest."""


def test_a_mean_is_rounded_once():
    assert mean([0.1] * 10) == 0.1
    assert mean([1e16, 1.0, -1e16]) == pytest.approx(1 / 3)
    with pytest.raises(ZeroDivisionError):
        mean([])


def test_minus_zero_has_one_way_to_be_written():
    document = entries()[0].submission.model_dump(by_alias=True, exclude_none=True)
    task = next(iter(document["results"]["full"]))
    document["results"]["full"][task]["MCC"] = -0.0
    _, tasks = leaderboards([entry(SubmissionV10.model_validate(document))], shipped_benchmark())
    assert str(tasks["data"]["full"][0]["task_MCC"][task]) == "0.0"


def test_a_board_that_does_not_fit_its_schema_is_refused(board):
    broken = {"data": {"full": [board[0]["data"]["full"][0] | {"macro_MCC": 1.5}]}}
    with pytest.raises(InvalidBoard) as refusal:
        board_file_bytes("leaderboard.json", broken)
    assert (
        refusal.value.message
        == "leaderboard.json: data/full/0/macro_MCC: Input should be less than or equal to 1"
    )


def test_writing_leaves_the_old_board_or_the_new_one(tmp_path: Path, monkeypatch):
    write_files(tmp_path, {"a.json": b"old", "b.json": b"old"})

    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(MachineFault, match="No space left"):
        write_files(tmp_path, {"a.json": b"new", "b.json": b"new"})
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "a.json": b"old",
        "b.json": b"old",
    }


def geneb_ci(*arguments: str, cwd: Path = PUBLIC) -> subprocess.CompletedProcess[str]:
    return forked.run("geneb_ci", *arguments, cwd=cwd)


def has_page(folder: Path, *more: str) -> None:
    """Hold that a folder has the files of the board, `more` and every page, and no other."""
    written = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    parts = ["data", "matrices", "history"]
    parts += [f"{part}-{regime}" for part in ("scores", "tasks") for regime in range(3)]
    scripts = {"board-current.js"} | {name_of(part, written) for part in parts}
    pages = {name for name in written if "/" in name and name not in FIXED_FILES} | {
        "pages.css",
        "marks.html",
    }
    assert written == {
        *FIXED_FILES,
        "board.js",
        "board.css",
        *scripts,
        *BYTES,
        *TABLE_FILES,
        *pages,
        "social.png",
        *more,
    }
    assert len(pages) == 2 * 41 + 100 + 13 + 9 + 2
    assert "feed.xml" not in written, "a folder has no history"


def test_build_writes_its_files_and_says_so(tmp_path: Path):
    done = geneb_ci("build", "--output", str(tmp_path / "board"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == (
        f"built {tmp_path}/board/leaderboard.json, leaderboard_tasks.json, diagnostics.json, "
        "values.csv, values.parquet and codebook.json: 41 models\nnext: geneb-ci serve\n"
    )
    written = {path.name: path.read_bytes() for path in (tmp_path / "board").glob("*.json")}
    assert {name: hashlib.sha256(written[name]).hexdigest() for name in BYTES} == BYTES
    assert sorted(written.keys() - BYTES.keys()) == ["codebook.json", "diagnostics.json"]
    for name, digest in TABLE_FILES.items():
        assert digest in {"", hashlib.sha256((tmp_path / "board" / name).read_bytes()).hexdigest()}
    has_page(tmp_path / "board", "diagnostics.json")
    document = json.loads(written["diagnostics.json"])
    assert document["method"] == {
        "metric": "MCC",
        "confidence": 0.95,
        "overlap": 0.5,
        "dependence": "none",
        "margin": 0.03,
    }


@pytest.mark.nightly  # in the gate, test_plain_install.py
def test_build_needs_no_extra_without_diagnostics(tmp_path: Path):
    rows = tmp_path / "rows"
    rows.mkdir()
    shutil.copy(SUBMISSIONS / "splicebert-1024nt.json", rows)
    blocked = "import sys; sys.modules |= dict.fromkeys(('numpy', 'scipy'));"
    call = "from geneb_ci.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [
        sys.executable,
        "-c",
        blocked + call,
        "build",
        str(rows),
        "--output",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, cwd=PUBLIC, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert " ".join(done.stderr.split()) == (
        "geneb-ci: numpy is not installed, and the board's analyses need it "
        'fix: pip install "geneb-ci[build]"; without it, only `build --no-diagnostics` works'
    )
    done = subprocess.run(
        [*command, "--no-diagnostics"], cwd=PUBLIC, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.nightly
def test_build_of_everything_needs_numpy_alone_of_all_extras(tmp_path: Path):
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needs = declared["optional-dependencies"]["build"]
    assert [need.partition(">")[0] for need in needs] == ["numpy"]
    absent = sorted(set(EXTRAS) - {"numpy"})
    blocked = f"import sys; sys.modules |= dict.fromkeys({absent!r});"
    call = "from geneb_ci.cli.main import main; sys.exit(main(sys.argv[1:]))"
    command = [
        sys.executable,
        "-c",
        blocked + call,
        "build",
        "--no-cache",
        "--output",
        str(tmp_path),
    ]
    done = subprocess.run(command, cwd=PUBLIC, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.nightly  # in the gate, the same with diagnostics, above
def test_build_writes_upstreams_two_files_and_the_page_when_told_to(tmp_path: Path):
    done = geneb_ci("build", "--no-diagnostics", "--output", str(tmp_path))
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout == f"built {tmp_path}/leaderboard.json, leaderboard_tasks.json, values.csv, "
        "values.parquet and codebook.json: 41 models\nnext: geneb-ci serve\n"
    )
    digests = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in tmp_path.glob("*.json")
    }
    assert digests.pop("codebook.json")
    assert digests == BYTES
    has_page(tmp_path)


@pytest.mark.parametrize("words", [[], ["--at", "HEAD"], ["submissions"]])
def test_build_does_not_write_among_submissions(words, tmp_path, monkeypatch, capsys):
    """Four of its files would be read as submissions by the next command."""
    monkeypatch.chdir(shutil.copytree(PUBLIC, tmp_path / "board"))
    before = sorted(Path("submissions").iterdir())
    assert main(["build", *words, "--output", "submissions"]) == 2
    assert "submissions are read from this folder" in capsys.readouterr().err
    assert sorted(Path("submissions").iterdir()) == before


def test_build_writes_nothing_when_a_submission_has_an_error(tmp_path: Path):
    broken = tmp_path / "in"
    broken.mkdir()
    text = (SUBMISSIONS / "splicebert-1024nt.json").read_text(encoding="utf-8")
    (broken / "splicebert-1024nt.json").write_text(
        text.replace('"Acc":0.', '"Acc":7.', 1), encoding="utf-8"
    )
    done = geneb_ci("build", str(broken), "--output", str(tmp_path / "out"))
    assert done.returncode == 11
    assert "score-out-of-range" in done.stdout
    assert done.stderr == "nothing was built: every submission must pass every check\n"
    assert not (tmp_path / "out").exists()


def test_a_regime_with_declared_gaps_is_not_ranked(submission_v11):
    benchmark = shipped_benchmark()
    task = benchmark.task_ids[0]
    submission = submission_v11(lambda document: drop(document, "1shot", task))
    categories, tasks = leaderboards([entry(submission)], benchmark)
    assert {regime: len(rows) for regime, rows in categories["data"].items()} == {
        "full": 1,
        "10shot": 1,
        "1shot": 0,
    }
    assert {regime: len(rows) for regime, rows in tasks["data"].items()} == {
        "full": 1,
        "10shot": 1,
        "1shot": 0,
    }


def drop(document: dict[str, Any], regime: str, task: str) -> None:
    del document["results"][regime][task]
    del document["evidence"][regime][task]
    document["gaps"] = {regime: {task: "does not fit the memory of one GPU"}}


@each("score", [0.0, 1.0, -1.0, 0.1, 1 / 3, 1e-4, -1e-4, 9.9e-5, -1e-5, 1e-7, 1e-300, 0.00012])
def test_each_score_is_written_as_python_writes_it(score):
    numbers = PackedNumbers({"a": 0, "b": 1}, array.array("d", [0.5, score]), 1)
    row = leaderboards(entries()[:1], shipped_benchmark())[1]["data"]["full"][0]
    value = {"tasks": [], "data": {"full": [row | {"task_MCC": numbers}]}}
    plain = {"tasks": [], "data": {"full": [row | {"task_MCC": {"a": 0.5, "b": score}}]}}
    raw = board_file_bytes("leaderboard_tasks.json", value)
    assert (
        raw
        == json.dumps(
            plain, ensure_ascii=False, separators=(",", ":"), default=PackedNumbers.plain_dict
        ).encode()
    )


@each("width", [1, 2, 3])
def test_packed_numbers_are_the_same_by_name_and_all_at_once(width):
    numbers = PackedNumbers({"a": 0, "b": 1}, array.array("d", range(2 * width)), width)
    assert dict(numbers) == numbers.plain_dict()
    assert numbers["b"] == (1.0 if width == 1 else tuple(range(width, 2 * width)))


@each("number", [math.nan, math.inf, -math.inf])
def test_no_number_that_is_none_is_written(number):
    row = leaderboards(entries()[:1], shipped_benchmark())[1]["data"]["full"][0]
    broken = PackedNumbers({"a": 0}, array.array("d", [number]), 1)
    with pytest.raises(ValueError, match="Out of range"):
        board_file_bytes("leaderboard_tasks.json", {"data": {"full": [row | {"task_MCC": broken}]}})
