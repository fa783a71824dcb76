"""The harness gives what a plain stock script gives: predictions equal, scores to 1e-12."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import forked
from tests.harness.support import Harness
from tests.paths import ROOT

KERNEL = {"OPENBLAS_CORETYPE": "Haswell", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
ENVIRONMENT = {**os.environ, **KERNEL, "PYTHONPATH": str(ROOT)}
SCORE_TOLERANCE = 1e-12
"""Room for another order of a sum; the predictions have none."""
SUITE = "leannmlindsey_GUE_"
GATE = "prom_core_tata"
PRINTED = {"leannmlindsey_GUE_mouse_0": "0.437", "leannmlindsey_GUE_human_tf_0": "0.611"}
"""What an independent rerun by others printed for 4-mer frequencies, full data."""


def record_of(folder: Path, data: Path, *words: str) -> dict[str, Any]:
    done = Harness(folder)("run", "--data", data, "--output", "record.json", "--quiet", *words)
    assert done.returncode == 0, done.stderr
    made: dict[str, Any] = json.loads((folder / "record.json").read_text())
    return made


@pytest.fixture(scope="module")
def record(real_tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return record_of(tmp_path_factory.mktemp("one"), real_tasks, "--tasks", f"{SUITE}{GATE}")


@pytest.fixture(scope="module")
def whole(real_tasks: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return record_of(tmp_path_factory.mktemp("six"), real_tasks)


def test_equals_the_stock_script(record: dict[str, Any], real_tasks: Path) -> None:
    assert_stock(record, real_tasks, GATE)


@pytest.mark.nightly  # of two classes as that above, the last two with several times the rows
@pytest.mark.parametrize(
    "task", ["mouse_0", "mouse_3", "prom_300_tata", "human_tf_0", "human_tf_1"]
)
def test_the_others_equal_the_stock_script(
    whole: dict[str, Any], real_tasks: Path, task: str
) -> None:
    assert_stock(whole, real_tasks, task)


def assert_stock(record: dict[str, Any], real_tasks: Path, task: str) -> None:
    task_id = f"{SUITE}{task}"
    done = forked.run("tests.harness.oracle", str(real_tasks), task_id, cwd=ROOT, env=ENVIRONMENT)
    assert done.returncode == 0, done.stderr
    for regime, stock in json.loads(done.stdout).items():
        regime_record = record["tasks"][task_id]["regimes"][regime]
        assert regime_record["predictions_sha256"] == stock["predictions_sha256"], regime
        for column, name in enumerate(("MCC", "Acc", "F1")):
            expected = [triple[column] for triple in stock["triples"]]
            np.testing.assert_allclose(
                regime_record["per_seed"][name], expected, rtol=0, atol=SCORE_TOLERANCE
            )
            assert abs(regime_record["scores"][name] - np.mean(expected)) <= SCORE_TOLERANCE


@pytest.mark.nightly  # in the gate, all predictions of a task
def test_gives_the_printed_digits(whole: dict[str, Any]) -> None:
    for task_id, printed in PRINTED.items():
        assert f"{whole['tasks'][task_id]['regimes']['full']['scores']['MCC']:.3f}" == printed


@pytest.mark.nightly
def test_runs_what_the_folder_has_and_says_what_it_lacks(whole: dict[str, Any]) -> None:
    assert len(whole["tasks"]) == 6
    assert len(whole["missing"]) == 94
    assert whole["missing"][0]["reason"] == "not in the data"
    assert whole["dataset"]["verified"] is False
