"""Canonical predictions follow from the bytes: not from the BLAS kernel, nor from its threads."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.paths import IMPORTABLE
from tests.receipt.written import Written

KERNELS = ("Nehalem",)
"""Of OpenBLAS: it sums in another order than Haswell's, by which the claims were computed."""
THREADS = (1, 2)
TASK = "mini_splice"
"""Three classes: the largest problem for its size."""
CELLS = """
import json, sys
from pathlib import Path
import sklearn.linear_model
from threadpoolctl import threadpool_limits
from reference_harness.data import benchmark, task_folder
from reference_harness.receipt.cells import CellsJob, receipt_in

file, folder, task = sys.argv[1:]
_, said = receipt_in(Path(file))
job = CellsJob(
    task, Path(folder) / f"{task}.f16", said[task], benchmark.mini(), task_folder.MiniSource(),
    ("full", "10shot", "1shot"), canonical=True,
)
found = {}
for threads in (1, 2):
    with threadpool_limits(limits=threads):
        one = job.execute()
    found[threads] = {
        "cells": {
            name: [cell.predictions_sha256, cell.confusion, cell.per_seed.model_dump()]
            for name, cell in one.cells.regimes.items()
        },
        "blas": [
            [each["kernel"], each["threads"]]
            for each in one.libraries if each["library"] == "openblas"
        ],
    }
print(json.dumps(found))
"""


def computed(written: Written, kernel: str) -> Any:
    """Compute the cells of a task under one kernel, with one thread and with two."""
    words = (str(written.file), str(written.receipt), TASK)
    done = subprocess.run(
        [sys.executable, "-c", CELLS, *words], capture_output=True, text=True, check=False,
        env=os.environ | {"OPENBLAS_CORETYPE": kernel, "PYTHONPATH": IMPORTABLE},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.nightly  # in the gate, settings from outside and digests of record
def test_predictions_are_equal_label_by_label(of_mini: Written) -> None:
    cells_by_kernel = {kernel: computed(of_mini, kernel) for kernel in KERNELS}
    used = {
        kernel: [cells_by_kernel[kernel][str(number)]["blas"] for number in THREADS]
        for kernel in KERNELS
    }
    if os.cpu_count() == 1:
        pytest.fail("two threads need two processors")
    for kernel in KERNELS:
        for number, blas in zip(THREADS, used[kernel], strict=True):
            assert blas
            assert all(kernel_and_threads == [kernel, number] for kernel_and_threads in blas), (
                "each is really another"
            )
    first = cells_by_kernel[KERNELS[0]]["1"]["cells"]
    for kernel in KERNELS:
        for number in THREADS:
            assert cells_by_kernel[kernel][str(number)]["cells"] == first
