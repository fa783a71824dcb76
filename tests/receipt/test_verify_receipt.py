"""`geneb-ci receipt verify` on real receipts: what is wrong with each is refused by name."""

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from geneb_ci.common.benchmark import shipped_benchmark
from geneb_ci.common.errors import NothingChecked
from geneb_ci.receipt.predictions import PREDICTIONS_FILE as PREDICTIONS
from geneb_ci.receipt.predictions import decode_predictions
from geneb_ci.receipt.verify import STEPS, receipt_subject
from reference_harness.probe.metrics import mean_scores, scores_of
from tests.loopback import loopback
from tests.receipt.conftest import REAL
from tests.receipt.forged import claim_canonical
from tests.receipt.test_push_pull import served
from tests.receipt.written import UNSCALED_MIN, Written, changed

Rows = np.ndarray
TASK = "mini_tf"


def put(row: int, column: int, value: float) -> Callable[[Rows], Rows]:
    """Return what writes one value into a copy of the embeddings."""

    def change(rows: Rows) -> Rows:
        rows = rows.copy()
        rows[row, column] = value
        return rows

    return change


def flipped(rows: Rows) -> Rows:
    """Flip the lowest bit of one value that is not 0."""
    raw = rows.copy().view("<u2")
    row, column = np.argwhere(raw)[0]
    raw[row, column] ^= 1
    return raw.view("<f2")


def swapped(rows: Rows) -> Rows:
    return rows[[1, 0, *range(2, len(rows))]]


MINI = shipped_benchmark("benchmark-mini.json")
ALTERED: dict[str, tuple[Callable[[Rows], Rows], str, str]] = {
    "a flipped bit": (flipped, "files", "has the sha256"),
    "swapped embeddings": (swapped, "files", "has the sha256"),
    "a missing embedding": (lambda rows: rows[:-1], "files", "bytes; expected"),
    "an extra embedding": (lambda rows: np.vstack([rows, rows[:1]]), "files", "bytes; expected"),
    "-0.0": (put(3, 5, -0.0), "values", "has -0.0 in embedding 3, column 5"),
    "NaN": (put(7, 0, np.nan), "values", "has NaN in embedding 7, column 0"),
    "infinity": (put(1, 255, -np.inf), "values", "has infinity in embedding 1, column 255"),
}
RESEALED: dict[str, tuple[Callable[[Rows], Rows], str, str]] = {
    "-0.0": ALTERED["-0.0"],
    "NaN": ALTERED["NaN"],
    "infinity": ALTERED["infinity"],
}


def test_an_honest_receipt_holds(of_mini: Written) -> None:
    done = of_mini.verify(apart=True)
    assert done.returncode == 0, done.stderr
    text = re.sub(r"in \d+ s|root [0-9a-f]{16}", lambda m: m[0].split()[0] + " X", done.stdout)
    assert text.splitlines() == [
        "four-mers.json: verified",
        "  ✓ claims       the file is consistent with itself and with the benchmark",
        "  ✓ files        every file has the size and digest that the receipt gives",
        "  ✓ values       no -0.0, NaN or infinity",
        "  ✓ tree         the embeddings of each file give the root in the receipt",
        "  ✓ equality     equal sequences have equal embeddings, within and across tasks",
        "  ✓ cells        every score agrees with the receipt",
        "  ✓ predictions  every predicted and true class follows from embeddings and data",
        "",
        "6/6 cells in X; 2 tasks, 1,040 embeddings, 532.5 kB; root X...",
    ]
    cost, *progress = done.stderr.splitlines()
    assert cost.startswith("2 tasks, 1,040 embeddings of 256 numbers, 532.5 kB; about ")
    assert re.sub(r"\d+ s", "X", progress[1]) == "task 2 of 2: mini_tf, about X left"


@pytest.mark.parametrize("kind", ["small", "real"])
def test_other_benchmarks_hold(kind: str, request: pytest.FixtureRequest) -> None:
    written: Written = request.getfixturevalue(f"of_{kind}")
    done = written.verify("--quiet", "--format", "json")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    tasks = list(UNSCALED_MIN) if kind == "small" else [REAL]
    cells = 3 * len(tasks)
    assert (document["verified"], document["refused_at"], document["weak"]) == (True, None, None)
    assert document["cells"] == {"computed": cells, "equal": cells, "filled": 0}
    assert sorted(document["tasks"]) == sorted(tasks)
    assert [(step["step"], step["state"]) for step in document["steps"]] == [
        (step, "held") for step in STEPS
    ]
    assert document["recomputed"]["unequal"] == document["differences"] == []


@pytest.mark.parametrize("name", ALTERED)
@pytest.mark.parametrize("kind", ["mini", "real"])
def test_altered_rows_are_refused_by_name(
    kind: str, name: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    change, step, message = ALTERED[name]
    written = request.getfixturevalue(f"of_{kind}").copied(tmp_path)
    task = TASK if kind == "mini" else REAL
    written.put(task, change(written.rows(task)))
    refusal = written.refused()
    assert refusal[0] == step
    assert refusal[1].startswith(f"{task}.f16 has ")
    assert message in refusal[1]


@pytest.mark.parametrize("name", RESEALED)
def test_values_are_refused_although_every_digest_fits(
    of_mini: Written, name: str, tmp_path: Path
) -> None:
    change, step, message = RESEALED[name]
    written = of_mini.copied(tmp_path)
    written.sealed(TASK, change(written.rows(TASK)))
    refusal_text = f"{TASK}.f16 {message}; a receipt holds finite numbers, and 0.0 for zero"
    assert written.refused() == (step, refusal_text)


@pytest.mark.parametrize(("scale", "times"), [(1, 1), (-3, 1), (-21, 2.0**15), (1, 2.0**15)])
def test_a_scale_that_does_not_follow_from_the_values_is_refused(
    of_mini: Written, scale: int, times: float, tmp_path: Path
) -> None:
    written = of_mini.copied(tmp_path)
    rows = (written.rows(TASK).astype(np.float64) * times).astype(np.float16)
    written.sealed(TASK, rows, scale)
    step, refusal_text = written.refused()
    message = f"{TASK}.f16 has the scale 2^{scale} and the largest stored value "
    assert (step, refusal_text[: len(message)]) == ("values", message)


def test_the_first_of_several_files_is_named(of_mini: Written, tmp_path: Path) -> None:
    written = of_mini.copied(tmp_path)
    written.put("mini_splice", put(0, 0, np.nan)(written.rows("mini_splice")))
    written.put(TASK, swapped(written.rows(TASK)))
    step, refusal_text = written.refused()
    assert step == "files"
    assert refusal_text.startswith("mini_tf.f16 has the sha256 ")
    assert refusal_text.endswith("; 1 other file refused as well")


@pytest.mark.parametrize("kind", ["small", "real"])
def test_unequal_rows_of_equal_sequences(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    written = request.getfixturevalue(f"of_{kind}").copied(tmp_path)
    task = UNSCALED_MIN[1] if kind == "small" else REAL
    rows = written.rows(task).copy()
    _, first, counts = np.unique(rows, axis=0, return_index=True, return_counts=True)
    row = 59 if kind == "small" else int(first[np.argmax(counts > 1)])
    rows[row] *= 2
    written.sealed(task, rows)
    step, refusal_text = written.refused()
    assert step == "equality"
    where = "first, second" if kind == "small" else REAL
    assert refusal_text == f"1 sequence has embeddings that differ, in {where}"


def test_rows_that_the_data_have_not(of_small: Written, tmp_path: Path) -> None:
    written = of_small.copied(tmp_path)
    changed(written, lambda document: document["receipt"]["tasks"]["first"].update(train=61))
    written.sealed("first", np.vstack([written.rows("first")[:1], written.rows("first")]))
    step, refusal_text = written.refused(apart=True)
    assert step == "cells"
    assert (
        "has 61 training and 41 test embeddings, expected 60 and 41 as in the data" in refusal_text
    )


def another_row(written: Written) -> None:
    """Exchange the embeddings of two training sequences of different classes."""
    rows = written.rows(TASK)
    written.sealed(TASK, np.vstack([rows[::-1][:360], rows[360:]]))


def digest(document: Any) -> None:
    document["evidence"]["full"][TASK]["predictions_sha256"] = "0" * 64


def matrix(document: Any) -> None:
    """Take one wrong embedding for a right one, in one seed, and compute every score anew."""
    claim = document["evidence"]["10shot"][TASK]
    claim["confusion"][2][0][0] += 1
    claim["confusion"][2][0][1] -= 1
    recomputed(document, claim)


def recomputed(document: Any, claim: Any) -> None:
    triples = [scores_of(np.array(item)) for item in claim["confusion"]]
    claim["per_seed"] = {
        name: [getattr(triple, name) for triple in triples] for name in ("MCC", "Acc", "F1")
    }
    document["results"]["10shot"][TASK] = mean_scores(triples)._asdict()


def cell(document: Any) -> None:
    """Claim another matrix for every seed of one cell, and the scores that follow."""
    claim = document["evidence"]["10shot"][TASK]
    for seed_matrix in claim["confusion"]:
        seed_matrix[0].reverse()
    recomputed(document, claim)


FORGED: dict[str, tuple[Callable[[Written], None], str]] = {
    "rows": (another_row, ""),
    "the digest of predictions": (
        lambda written: changed(written, digest), "full mini_tf: shown predictions_sha256"
    ),
    "one matrix": (lambda written: changed(written, matrix), "10shot mini_tf: shown matrix 3 of 5"),
    "one cell": (lambda written: changed(written, cell), "10shot mini_tf: shown MCC"),
}  # fmt: skip


@pytest.mark.parametrize("name", FORGED)
def test_claims_that_the_receipt_does_not_give(of_mini: Written, name: str, tmp_path: Path) -> None:
    forge, what = FORGED[name]
    written = of_mini.copied(tmp_path)
    forge(written)
    done = written.verify("--quiet", "--tasks", TASK)
    assert (done.returncode, done.stderr) == (11, "")
    assert "✗ cells       " in done.stdout
    assert f"    - {what}" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80
    counts = re.search(r"^(\d)/3 cells", done.stdout, re.MULTILINE)
    assert counts is not None
    assert int(counts[1]) < 3


def test_canonical_claims_of_an_earlier_run_are_compared(of_mini: Written, tmp_path: Path) -> None:
    """It names no scorer: what it shows is not compared, what it proves is."""
    written = of_mini.copied(tmp_path)
    claim_canonical(written.file, written.receipt)
    assert written.verify("--quiet", "--tasks", TASK).returncode == 0

    def raised(document: Any) -> None:
        document["evidence"]["full"][TASK]["canonical"]["predictions_sha256"] = "0" * 64

    changed(written, raised)
    done = written.verify("--quiet", "--tasks", TASK)
    assert done.returncode == 11
    assert "    - full mini_tf: predictions_sha256" in done.stdout


INCONSISTENT: dict[str, tuple[Callable[[Any], None], str]] = {
    "a score": (
        lambda document: document["results"]["full"][TASK].update(MCC=0.5),
        "/results/full/mini_tf",
    ),
    "a scale": (
        lambda document: document["receipt"]["tasks"][TASK].update(scale_log2=1), "/receipt/root"
    ),
    "the root": (lambda document: document["receipt"].update(root="0" * 64), "/receipt/root"),
    "the width": (lambda document: document["receipt"].update(dim=128), "/receipt/"),
    "a task": (lambda document: document["receipt"]["tasks"].pop(TASK), "/receipt/"),
}  # fmt: skip


@pytest.mark.parametrize("name", INCONSISTENT)
def test_a_file_that_contradicts_itself(of_mini: Written, name: str, tmp_path: Path) -> None:
    change, expected_start = INCONSISTENT[name]
    written = of_mini.copied(tmp_path)
    changed(written, change)
    step, refusal_text = written.refused()
    assert step == "claims"
    assert refusal_text.startswith(expected_start)


def test_predictions_of_other_rows_and_other_true_classes(of_mini: Written, tmp_path: Path) -> None:
    """Two embeddings of equal predictions change their classes: no count and no digest shows it."""
    written = of_mini.copied(tmp_path)
    path = written.receipt / PREDICTIONS
    task_predictions = decode_predictions(path.read_bytes(), MINI).tasks["mini_tf"]
    fits = np.concatenate([f for by in task_predictions.fits.values() for f in by.values()])
    zeros = {fits[:, i].tobytes(): i for i in np.flatnonzero(task_predictions.truth == 0)}
    index = next(
        i for i in np.flatnonzero(task_predictions.truth == 1) if fits[:, i].tobytes() in zeros
    )
    other = zeros[fits[:, index].tobytes()]

    def sealed(raw: bytes) -> None:
        path.write_bytes(raw)
        document = written.document
        file_digest = {"bytes": len(raw), "sha256": hashlib.sha256(raw).hexdigest()}
        document["receipt"]["predictions"] = file_digest
        written.says(document)

    raw = path.read_bytes()
    codes = np.packbits(
        np.concatenate([task_predictions.truth, fits.ravel()]).astype(np.uint8)
    ).tobytes()
    assert raw.count(codes) == 1
    truth = task_predictions.truth.copy()
    truth[[index, other]] = truth[[other, index]]
    swapped = np.packbits(np.concatenate([truth, fits.ravel()]).astype(np.uint8)).tobytes()
    sealed(raw.replace(codes, swapped))
    step, text = written.refused()
    assert step == "predictions"
    assert text == '"mini_tf": the true classes of the predictions are not those of the task data'

    (bits := np.unpackbits(np.frombuffer(codes, "u1")))[len(truth) * 3] ^= 1
    sealed(raw.replace(codes, np.packbits(bits).tobytes()))
    step, text = written.refused()
    assert step == "predictions"
    assert text.startswith('"mini_tf" in "10shot": confusion matrix ')


def test_predictions_that_are_not_the_receipt_s_are_found_before_any_cell(
    of_mini: Written, tmp_path: Path
) -> None:
    written = of_mini.copied(tmp_path)
    path = written.receipt / PREDICTIONS
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    step, refusal_text = written.refused()
    assert step == "files"
    assert refusal_text.startswith(f"{path}: has ")
    assert re.search(r"has \d+ bytes and the sha256 \w+; expected \d+ bytes", refusal_text)
    path.unlink()
    done = written.verify("--quiet")
    assert (done.returncode, done.stdout) == (3, "")
    assert "there is no such file, but the receipt has one for the predictions" in done.stderr


SIZES = {
    "rows": ("train", 10**9, "train is 1000000000"),
    "embeddings beyond any number": ("test", 1 << 64, "test is 18446744073709551616"),
    "bytes": ("bytes", 1 << 50, "bytes is 1125899906842624"),
    "columns": (None, 1 << 33, "dim is 8589934592"),
}


@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_nobody_could_verify(of_mini: Written, name: str, tmp_path: Path) -> None:
    """A file of zeros that takes no room on a disk may have any size."""
    member, size, message = SIZES[name]
    written = of_mini.copied(tmp_path)
    document = written.document
    receipt = document["receipt"]
    (receipt["tasks"][TASK] if member else receipt)[member or "dim"] = size
    written.says(document)
    with pytest.raises(NothingChecked) as caught:
        receipt_subject(written.file)
    assert caught.value.message == f"{written.file} cannot be read as a submission: {message}"


def test_a_gap_is_filled(of_mini: Written, tmp_path: Path) -> None:
    def leave_out(document: Any) -> None:
        for part in ("results", "evidence"):
            del document[part]["1shot"][TASK]
        document["gaps"] = {"1shot": {TASK: "it went wrong"}}

    written = of_mini.copied(tmp_path)
    changed(written, leave_out)
    done = written.verify("--quiet")
    assert (done.returncode, done.stderr) == (0, "")
    assert "every submitted score agrees; some cells were not submitted" in done.stdout
    assert "- 1shot mini_tf: the cell is not claimed; the receipt gives MCC -0." in done.stdout
    assert "5/6 cells equal the submitted ones; 1 were not submitted" in done.stdout


@pytest.mark.parametrize(("key", "value"), [("compute_dtype", "bfloat16"), ("tf32", True)])
def test_a_weak_receipt_says_so(of_mini: Written, key: str, value: object, tmp_path: Path) -> None:
    written = of_mini.copied(tmp_path)
    changed(written, lambda document: document["receipt"].update({key: value}))
    done = written.verify("--quiet", "--tasks", TASK)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1].startswith("weak receipt: ")


def test_a_mirror_with_another_file_is_refused(of_small: Written, tmp_path: Path) -> None:
    shelf = served(of_small)
    name = f"/rows/{UNSCALED_MIN[0]}.f16"
    shelf.files[name] = shelf.files[name][::-1]
    with loopback(shelf.handler()) as server:
        words = ("--mirror", f"{server}/rows", "--tasks", UNSCALED_MIN[0], "--cache", str(tmp_path))
        done = of_small.verify(*words, here=False)
    assert done.returncode == 11, done.stderr
    assert f"✗ files        {server}/rows/first.f16: the file has sha256" in done.stdout
    assert "no cell was computed" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_scoring_has_limits(of_small: Written) -> None:
    words = ("--quiet", "--tasks", UNSCALED_MIN[0], "--limit-scoring-memory", "32M")
    done = of_small.verify(*words, apart=True)
    assert (done.returncode, done.stdout) == (3, "")
    assert "task first: scoring its embeddings was stopped: it used more than 32 MiB" in done.stderr


USAGE = {
    "not published": ((), False, 2, "the receipt is not published: its location is null"),
    "no such task": (("--tasks", "mini_x"), True, 2, "--tasks mini_x: the receipt has no such"),
    "two sources": (("--mirror", "a/b"), True, 2, "with a folder nothing is fetched"),
    "no mirror": (("--mirror", "a b"), False, 2, "is neither an https address nor OWNER/NAME"),
}


@pytest.mark.parametrize("name", USAGE)
def test_what_a_user_may_mean_otherwise(of_mini: Written, name: str) -> None:
    words, here, code, message = USAGE[name]
    done = of_mini.verify(*words, here=here)
    assert (done.returncode, done.stdout) == (code, "")
    assert message in done.stderr
    assert "fix: " in done.stderr


def test_a_file_that_is_not_there(of_mini: Written, tmp_path: Path) -> None:
    written = of_mini.copied(tmp_path)
    (written.receipt / f"{TASK}.f16").unlink()
    done = written.verify("--quiet")
    assert (done.returncode, done.stdout) == (3, "")
    assert f"{TASK}.f16: there is no such file" in done.stderr
    changed(written, lambda document: document.update(receipt=None))
    done = written.verify("--quiet")
    assert (done.returncode, done.stdout) == (3, "")
    assert "four-mers.json has no receipt" in done.stderr
