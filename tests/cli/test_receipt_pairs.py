"""`geneb-ci receipt predictions`, `near` and `geneb-ci compare` on what the harness wrote."""

import functools
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geneb_ci.cli.main import main
from geneb_ci.receipt.compared import compared_regimes, scored_model
from geneb_ci.receipt.predictions import OF_RECORD
from geneb_ci.statistics.metrics import scores_of_matrix
from geneb_ci.statistics.paired import macro_weights
from tests import forked
from tests.harness.support import Harness
from tests.paths import SUBMISSIONS

WORDS = ("--tasks", "mini_species,mini_tf", "--quiet", "--output", "record.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return two_models(tmp_path_factory.mktemp("pairs"), WORDS)


def two_models(board_folder: Path, words: tuple[str, ...]) -> Path:
    """Run 3-mers and 4-mers with receipts; returns the folder."""
    harness = Harness(board_folder)
    for k in (3, 4):
        name = f"{k}-mer"
        done = harness(
            "run", "--option", f"k={k}", "--model-id", name, "--submission", f"{name}.json",
            "--receipt", name, *words,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
    return harness.folder


def receipt(folder: Path, *words: object) -> Any:
    return forked.run("geneb_ci", "receipt", *map(str, words), cwd=folder)


def compare(folder: Path, *words: object) -> Any:
    return forked.run("geneb_ci", "compare", *map(str, words), cwd=folder)


def changed(folder: Path, name: str, change: Any) -> None:
    document = json.loads((folder / "3-mer.json").read_bytes())
    change(document)
    (folder / f"{name}.json").write_text(json.dumps(document))


def test_predictions_are_compared_with_the_submission(folder: Path) -> None:
    done = receipt(folder, "predictions", "3-mer")
    assert (done.returncode, done.stdout, done.stderr) == (
        0, "2 tasks: every matrix and digest follows from the predictions\n", "",
    )  # fmt: skip
    digest = "f" * 64

    def change(document: Any) -> None:
        document["evidence"]["full"]["mini_tf"]["predictions_sha256"] = digest

    changed(folder, "altered", change)
    done = receipt(folder, "predictions", "altered.json=3-mer")
    assert done.returncode == 11
    assert done.stdout.startswith(
        f'"mini_tf" in "full": predictions_sha256 (of record) is {digest}; the predictions have '
    )
    assert done.stdout.endswith("\n1 contradiction in 2 tasks\n")


def test_a_receipt_under_another_name_is_near(folder: Path, tmp_path: Path) -> None:
    """Files that are not the receipt's are refused before any row is compared."""
    done = receipt(folder, "near", "3-mer", "4-mer.json")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == "not near"
    shutil.copytree(folder / "3-mer", tmp_path / "copy")
    for file in (tmp_path / "copy").glob("*.f16"):
        rows = np.fromfile(file, "<f2").reshape(-1, 64)
        rows[:, ::-1].tofile(file)
    done = receipt(folder, "near", "3-mer", f"3-mer.json={tmp_path / 'copy'}")
    assert (done.returncode, "has the sha256" in done.stderr) == (11, True)
    changed(folder, "renamed", lambda document: document.update(model_id="renamed"))
    done = receipt(folder, "near", "3-mer", "renamed.json=3-mer", "--format", "json")
    document = json.loads(done.stdout)
    assert (document["models"], document["is_near"]) == (["3-mer", "renamed"], True)
    assert document["why"] == "100.0% of 154 embeddings are within 0.01, as they are"
    assert document["same_predictions"] == 1.0


def test_two_models_are_compared_row_by_row(folder: Path) -> None:
    done = compare(folder, "3-mer", "4-mer", "--by-task")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["a: 3-mer", "b: 4-mer"]
    assert max(map(len, lines)) <= 80
    assert [line for line in lines if line.endswith("test sequences drawn again")] == [
        f"{regime}: MCC; intervals from test sequences drawn again"
        for regime in ("full", "10shot", "1shot")
    ]
    results = [
        json.loads((folder / f"{name}.json").read_bytes())["results"] for name in ("3-mer", "4-mer")
    ]
    other = compare(folder, "4-mer", "3-mer", "--format", "json")
    regimes = json.loads(other.stdout)["regimes"]
    for regime, own in regimes.items():
        paired, (macro, *by_category) = own["paired"], own["scores"]
        assert macro["difference"] == pytest.approx(paired["macro"]["difference"], abs=1e-12)
        assert macro["interval"]["low"] < macro["difference"] < macro["interval"]["high"]
        assert len(by_category) == 2
        mine, theirs = (
            sum(cell["MCC"] for cell in result[regime].values()) / 2 for result in results
        )
        assert paired["macro"]["difference"] == pytest.approx(theirs - mine, abs=1e-12)
        assert paired["macro"]["se"] < paired["macro"]["unpaired_se"]
        assert set(paired["tasks"]) == {"mini_species", "mini_tf"}
        assert {len(cell["fits"]) for cell in paired["tasks"].values()} == {
            1 if regime == "full" else 5
        }


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("predictions", "none"), 3, "none.json: "),
        (("near", "3-mer.json=none", "4-mer"), 2, "none: no such folder"),
        (
            ("near", "3-mer", "3-mer.json"),
            2,
            "both files are 3-mer.json, expected submissions of two",
        ),
        (("predictions", "bare.json=3-mer"), 3, "the receipt names no predictions.bin"),
        (("predictions", "3-mer.json=empty"), 3, "predictions.bin: cannot be read: No such file"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    folder: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    def bare(document: Any) -> None:
        document["receipt"]["predictions"] = None

    changed(folder, "bare", bare)
    (folder / "empty").mkdir(exist_ok=True)
    done = receipt(folder, *words)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr


@functools.cache
def mcc_of(counts: bytes, classes: int) -> float:
    matrix = np.frombuffer(counts, np.int64).reshape(classes, classes)
    return scores_of_matrix(matrix.tolist()).mcc


def plain_bootstrap(
    task: Any, first: Any, second: Any, resamples: int, generator: np.random.Generator
) -> Any:
    """Return differences in MCC of one fit, each resample a list of rows drawn with replacement."""
    classes, size = len(task.labels), len(task.truth)
    rows = generator.integers(0, size, (resamples, size))
    cell_index = (
        np.arange(resamples)[:, None] * classes**2 + task.truth.astype(np.int64)[rows] * classes
    )
    scores = []
    for (fit,) in (first, second):
        counts = np.bincount((cell_index + fit[rows]).ravel(), minlength=resamples * classes**2)
        matrices = counts.reshape(resamples, -1)
        scores.append(np.array([mcc_of(counts.tobytes(), classes) for counts in matrices]))
    return scores[0] - scores[1]


def compared_with_plain(folder: Path, resamples: int, near: float) -> None:
    """Hold that the interval of macro is that of a plain bootstrap, up to the noise of draws."""
    a, b = (scored_model(str(folder / name)) for name in ("3-mer", "4-mer"))
    assert a.predictions is not None
    assert b.predictions is not None
    full_regime = compared_regimes(a, b, resamples)["full"]
    assert full_regime.over == "test sequences"
    weights = macro_weights({
        name: tuple(task for task in tasks if task in a.predictions.tasks)
        for name, tasks in a.benchmark.categories.items()
    })  # fmt: skip
    plain, generator = np.zeros(resamples), np.random.default_rng(3)
    for task, weight in weights.items():
        own, other = a.predictions.tasks[task], b.predictions.tasks[task]
        mine, theirs = (predicted.fits[OF_RECORD]["full"] for predicted in (own, other))
        plain += weight * plain_bootstrap(own, mine, theirs, resamples, generator)
    interval = full_regime.scores[0].interval
    assert interval is not None
    assert interval.low == pytest.approx(np.quantile(plain, 0.025), abs=near)
    assert interval.high == pytest.approx(np.quantile(plain, 0.975), abs=near)
    assert interval.probability == pytest.approx(np.mean(plain > 0), abs=0.01)


def test_an_interval_is_that_of_a_plain_paired_bootstrap(folder: Path) -> None:
    compared_with_plain(folder, 4_000, 0.005)


@pytest.mark.nightly  # every task of GENEB-mini
def test_an_interval_of_many_tasks_is_within_a_thousandth(tmp_path: Path) -> None:
    words = ("--quiet", "--output", "record.json", "--regimes", "full")
    compared_with_plain(two_models(tmp_path, words), 40_000, 0.001)


def test_without_predictions_tasks_are_drawn_again(folder: Path, tmp_path: Path) -> None:
    """Run records, and submissions whose receipts are elsewhere."""
    for name in ("3-mer", "4-mer"):
        shutil.copy(folder / f"{name}.json", tmp_path)
    shutil.copy(folder / "record.json", tmp_path / "checkpoint.json")
    lines = compare(tmp_path, "3-mer", "checkpoint", "--format", "csv").stdout.splitlines()
    assert lines[0] == "regime,score,tasks,a,b,difference,low,high,probability,over"
    assert len(lines) == 1 + 3 * 5
    assert {line.rpartition(",")[2] for line in lines[1:]} == {"tasks"}
    assert all(",,,,tasks" in line for line in lines[1:]), "no interval from two tasks"
    text = compare(tmp_path, "3-mer", "4-mer").stdout
    assert "full: MCC; intervals from tasks drawn again (none for fewer than 5 tasks)\n" in text
    by_submission = compare(tmp_path, "3-mer", "4-mer", "--format", "csv").stdout.splitlines()
    assert by_submission == lines
    plot = compare(tmp_path, "3-mer", "4-mer", "--format", "svg", "--by-task").stdout
    assert plot.count("<circle ") == len(lines) - 1
    exact = compare(tmp_path, f"3-mer={folder / '3-mer'}", f"4-mer={folder / '4-mer'}")
    assert "full: MCC; intervals from test sequences drawn again" in exact.stdout


def test_rows_of_the_repository_are_named_by_their_ids(monkeypatch, capsys) -> None:
    monkeypatch.chdir(SUBMISSIONS)
    assert main(["compare", "GROVER.json", "MutBERT.json", "--resamples", "100"]) == 0
    by_file = capsys.readouterr().out
    monkeypatch.chdir(SUBMISSIONS.parent)
    assert main(["compare", "grover", "MutBERT", "--resamples", "100"]) == 0
    assert capsys.readouterr().out == by_file
    assert main(["matrices", "GROVER"]) == 3
    assert "fix: name the file of the row: geneb-ci matrices submissions/GROVER.json" in (
        capsys.readouterr().err
    )


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("3-mer",), 2, "found 1 name, expected the names of two models"),
        (("3-mer", "3-mer"), 2, "both models are 3-mer, expected two different models"),
        (("3-mer", "bare=3-mer"), 2, "bare.json does not refer to a predictions.bin"),
        (("3-mer", "elsewhere"), 3, "elsewhere.json has scores for the benchmark definition 0000"),
        (("3-mer", "broken"), 3, "broken.json cannot be read as a submission or a run record"),
        (("3-mer", "cut"), 3, "cut.json cannot be read as a run record: "),
        (
            ("3-mer", "real"),
            2,
            "the models have different benchmark definitions: GENEB-mini",
        ),
        (("3-mer", "apart"), 3, "the two models share no task and regime with scores"),
    ],
)
def test_what_is_no_pair_is_refused(
    folder: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    changed(folder, "bare", lambda value: value["receipt"].update(predictions=None))
    changed(folder, "elsewhere", lambda value: value["run"]["benchmark"].update(sha256="0" * 64))
    changed(folder, "apart", lambda value: value.update(results={}, evidence={}))
    (folder / "broken.json").write_text("[]")
    (folder / "cut.json").write_text('{"tasks": {}}')
    shutil.copy(SUBMISSIONS / "GROVER.json", folder / "real.json")
    done = compare(folder, *words)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
