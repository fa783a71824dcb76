"""`geneb-ci receipt predictions`, `near` and `compare` on receipts that the harness wrote."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import forked
from tests.harness.support import Harness

WORDS = ("--tasks", "mini_species,mini_tf", "--quiet", "--output", "record.json")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    harness = Harness(tmp_path_factory.mktemp("pairs"))
    for k in (3, 4):
        name = f"{k}-mer"
        done = harness(
            "run", "--option", f"k={k}", "--model-id", name, "--submission", f"{name}.json",
            "--receipt", name, *WORDS,
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
    return harness.folder


def receipt(folder: Path, *words: object) -> Any:
    return forked.run("geneb_ci", "receipt", *map(str, words), cwd=folder)


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
    found = json.loads(done.stdout)
    assert (found["models"], found["is_near"]) == (["3-mer", "renamed"], True)
    assert found["why"] == "100.0% of 154 embeddings are within 0.01, as they are"
    assert found["same_predictions"] == 1.0


def test_two_models_are_compared_row_by_row(folder: Path) -> None:
    done = receipt(folder, "compare", "3-mer", "4-mer", "--by-task")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[:2] == ["a: 3-mer", "b: 4-mer"]
    assert max(map(len, lines)) <= 80
    assert [line.split()[0] for line in lines[4:7]] == ["full", "10shot", "1shot"]
    results = [
        json.loads((folder / f"{name}.json").read_bytes())["results"] for name in ("3-mer", "4-mer")
    ]
    other = receipt(folder, "compare", "4-mer", "3-mer", "--format", "json")
    found = json.loads(other.stdout)["regimes"]
    for regime, one in found.items():
        mine, theirs = (
            sum(cell["MCC"] for cell in result[regime].values()) / 2 for result in results
        )
        assert one["macro"]["difference"] == pytest.approx(theirs - mine, abs=1e-12)
        assert one["macro"]["se"] < one["macro"]["unpaired_se"]
        assert set(one["tasks"]) == {"mini_species", "mini_tf"}
        assert {len(cell["fits"]) for cell in one["tasks"].values()} == {
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
            "both are 3-mer.json, expected the submissions of two",
        ),
        (("compare", "3-mer"), 2, "two receipts are compared, found 1 name"),
        (("predictions", "bare.json=3-mer"), 3, "its receipt names no predictions.bin"),
        (("compare", "3-mer", "other.json=4-mer"), 2, "the two are not both of GENEB-mini"),
        (("predictions", "3-mer.json=empty"), 3, "predictions.bin: cannot be read: No such file"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    folder: Path, words: tuple[str, ...], code: int, message: str
) -> None:
    def bare(document: Any) -> None:
        document["receipt"]["predictions"] = None

    def other(document: Any) -> None:
        document["run"]["benchmark"]["sha256"] = "0" * 64

    changed(folder, "bare", bare)
    changed(folder, "other", other)
    (folder / "empty").mkdir(exist_ok=True)
    done = receipt(folder, *words)
    assert (done.returncode, message in done.stderr) == (code, True), done.stderr
