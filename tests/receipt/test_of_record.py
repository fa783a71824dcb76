"""Scores of record follow from the bytes of a receipt, to the last bit."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from reference_harness.probe.scorer import SCORER
from reference_harness.receipt.rounding import rounded
from tests import forked
from tests.harness.support import Harness, timeless
from tests.paths import ROOT
from tests.receipt.written import MODEL, Written

TASKS = ("mini_tf", "mini_splice")
STOCK = (
    *("scores", "per_seed", "classes", "confusion", "predictions_sha256"),
    *("rows", "iterations", "warnings"),
)
OF_RECORD = {
    "mini_tf": {"full": "56a43ef88ddf", "10shot": "9e6c498c89e3", "1shot": "8d69886e45fb"},
    "mini_splice": {"full": "b2b8b257b309", "10shot": "c1a2c0e6f521", "1shot": "6c9787529b1b"},
}
"""First digits of the digests of predictions, by task and regime."""
OTHER_KERNEL = """
import sys
from reference_harness.probe import scorer
scorer_ref = scorer.scorer_ref
scorer.scorer_ref = lambda **found: scorer_ref(**{**found, "platform": "Linux aarch64"})
sys.argv[1:] = WORDS
from reference_harness.cli.main import main
main()
"""
"""A command on a machine that does not have the scorer: workers of a fork have this, too."""


def elsewhere(folder: Path, *words: str) -> tuple[int, str]:
    """Run the harness as on a machine without the scorer; return exit code and messages."""
    harness = Harness(folder)
    code = OTHER_KERNEL.replace("WORDS", repr(list(words)))
    done = harness.start(code=code)
    assert isinstance(done, forked.Started)
    return done.wait(), done.communicate()[1]


def record_in(folder: Path, name: str = "record.json") -> Any:
    return json.loads((folder / name).read_text(encoding="utf-8"))


def cells_of(written: Written, *more: str) -> Any:
    done = Harness(written.folder)(
        *("receipt-cells", "--submission", written.file, "--receipt", written.receipt),
        *("--tasks", ",".join(TASKS), "--output", "cells.json", "--quiet", *more),
    )
    assert (done.returncode, done.stderr) == (0, "")
    return record_in(written.folder, "cells.json")


def test_a_receipt_gives_every_stock_field_of_the_run_that_wrote_it(of_mini: Written) -> None:
    record, cells = record_in(of_mini.folder), cells_of(of_mini)
    assert record["scorer"] == cells["scorer"] == SCORER.ref.model_dump()
    assert of_mini.document["run"]["scorer"] == SCORER.ref.model_dump(exclude_none=True)
    for task in TASKS:
        for regime, ran in record["tasks"][task]["regimes"].items():
            again = cells["tasks"][task]["record"][regime]
            assert {key: again[key] for key in STOCK} == {key: ran[key] for key in STOCK}
        assert cells["tasks"][task]["regimes"] == {}


def test_the_predictions_of_record_are_those_of_every_python_and_machine(of_mini: Written) -> None:
    """Written down with Python 3.11; 3.12 and 3.13 gave the same."""
    tasks = record_in(of_mini.folder)["tasks"]
    scores_by_task = {
        task: {name: ran["predictions_sha256"][:12] for name, ran in tasks[task]["regimes"].items()}
        for task in TASKS
    }
    assert scores_by_task == OF_RECORD


# In the gate, one probe under such settings: tests/harness/test_harness_scorer.py; and the digests
# of predictions above.
@pytest.mark.nightly
def test_settings_from_outside_change_no_bit_of_a_record(of_mini: Written, tmp_path: Path) -> None:
    """By the command in interpreters of their own, whose workers load NumPy themselves."""
    settings = {
        "OPENBLAS_CORETYPE": "Prescott",
        "OPENBLAS_NUM_THREADS": "2",
        "OMP_NUM_THREADS": "2",
        "GENEB_HARNESS_CACHE": str(tmp_path / "cache"),
        "PYTHONPATH": str(ROOT),
    }
    words = (
        *("run", "--model-id", MODEL, "--tasks", ",".join(TASKS), "--output", "record.json"),
        *("--receipt", "receipt", "--quiet", "--jobs", "1"),
    )
    subprocess.run(
        [sys.executable, "-m", "reference_harness", *words],
        cwd=tmp_path, env={**os.environ, **settings}, check=True,
    )  # fmt: skip
    plain, other = record_in(of_mini.folder), record_in(tmp_path)
    assert other["scorer"]["digest"] == SCORER.digest
    assert timeless(other["tasks"]) == timeless(plain["tasks"])
    assert other["predictions"] == plain["predictions"]


def test_a_run_without_a_receipt_scores_the_same_rows(of_mini: Written, tmp_path: Path) -> None:
    done = Harness(tmp_path)(
        *("run", "--tasks", ",".join(TASKS), "--output", "record.json", "--quiet"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    for task, ran in record_in(tmp_path)["tasks"].items():
        for regime, cell in ran["regimes"].items():
            with_receipt = record_in(of_mini.folder)["tasks"][task]["regimes"][regime]
            assert {key: cell[key] for key in STOCK} == {key: with_receipt[key] for key in STOCK}


def test_a_machine_without_the_scorer_says_so_and_another_one_scores_its_receipt(
    of_mini: Written, tmp_path: Path
) -> None:
    code, message = elsewhere(
        tmp_path,
        *("run", "--model-id", MODEL, "--tasks", ",".join(TASKS), "--output", "record.json"),
        *("--submission", f"{MODEL}.json", "--receipt", "receipt"),
    )
    assert code == 0, message
    reason = (
        "this machine does not have the scorer of record: Linux aarch64, expected Linux x86_64: "
    )
    assert f"scores are not of record: {reason}" in " ".join(message.split())
    scorer = record_in(tmp_path)["scorer"]
    assert scorer["digest"] is None
    assert scorer["reason"].startswith(reason)
    claimed = record_in(tmp_path, f"{MODEL}.json")
    assert "digest" not in claimed["run"]["scorer"]
    # As another kernel may give: other predictions of one fit.
    record = record_in(tmp_path)
    record["tasks"][TASKS[0]]["regimes"]["full"] |= {"predictions_sha256": "0" * 64}
    (tmp_path / "record.json").write_text(json.dumps(record), encoding="utf-8")
    (tmp_path / "receipt/predictions.bin").write_bytes(b"of another kernel")
    done = Harness(tmp_path)(
        *("receipt-rescore", "--record", "record.json", "--receipt", "receipt", "--quiet"),
        *("--output", "new.json", "--former", f"{MODEL}.json", "--submission", "new-row.json"),
    )
    assert (done.returncode, done.stderr) == (0, "")
    new, plain = record_in(tmp_path, "new.json"), record_in(of_mini.folder)
    assert new["scorer"] == plain["scorer"]
    assert timeless(new["tasks"]) == timeless(plain["tasks"])
    assert new["predictions"] == plain["predictions"]
    document = record_in(tmp_path, "new-row.json")
    for part in ("meta", "results", "evidence", "receipt"):
        assert document[part] == of_mini.document[part]
    assert document["run"]["scorer"]["digest"] == SCORER.digest


@pytest.mark.parametrize("command", ["receipt-cells", "receipt-rescore"])
def test_a_machine_without_the_scorer_is_refused_by_name(
    of_mini: Written, tmp_path: Path, command: str
) -> None:
    written = of_mini.copied(tmp_path)
    words = {
        "receipt-cells": ("--submission", written.file.name, "--tasks", TASKS[0]),
        "receipt-rescore": ("--record", str(of_mini.folder / "record.json")),
    }[command]
    code, message = elsewhere(
        tmp_path, command, *words, "--receipt", "receipt", "--output", "out.json", "--quiet"
    )
    assert code == 3
    assert message.startswith(
        "error: this machine does not have the scorer of record: Linux aarch64, "
    )
    assert not (tmp_path / "out.json").exists()


def test_cells_of_an_earlier_submission_need_no_scorer(of_mini: Written, tmp_path: Path) -> None:
    written = of_mini.copied(tmp_path)
    document = written.document
    del document["run"]["scorer"]
    written.says(document)
    code, message = elsewhere(
        tmp_path, "receipt-cells", "--submission", written.file.name, "--tasks", TASKS[0],
        "--receipt", "receipt", "--output", "out.json", "--quiet",
    )  # fmt: skip
    assert (code, message) == (0, "")
    cells = record_in(tmp_path, "out.json")
    assert cells["scorer"]["reason"].startswith("this machine does not have the scorer of record")
    assert cells["tasks"][TASKS[0]]["record"] is None


def test_a_rescored_run_is_refused_for_files_of_another_one(
    of_mini: Written, tmp_path: Path
) -> None:
    written = of_mini.copied(tmp_path)
    rows = written.rows(TASKS[0])
    rows[0, 0] += 1
    written.put(TASKS[0], rows)
    done = Harness(tmp_path)(
        *("receipt-rescore", "--record", of_mini.folder / "record.json"),
        *("--receipt", "receipt", "--output", "new.json"),
    )
    assert done.returncode == 3
    assert f"{TASKS[0]}.f16: not the file of the record" in done.stderr


def test_what_is_scored_is_what_a_receipt_holds(of_mini: Written) -> None:
    """The widened embeddings of a file, rounded again, are its bytes."""
    rows = of_mini.rows(TASKS[1])
    entry = of_mini.document["receipt"]["tasks"][TASKS[1]]
    again = rounded([rows.astype("f4") * 2.0 ** entry["scale_log2"]])
    assert again.scale_log2 == entry["scale_log2"]
    assert again.values.tobytes() == rows.tobytes()
