"""Compute the cells of a receipt with the BLAS kernel of the environment and a number of threads.

Workers of the harness have one thread each, so `receipt-cells` cannot use two.
"""

import json
import sys
from pathlib import Path

import sklearn.linear_model  # noqa: F401 (limits of threads hold for libraries that are loaded)
from threadpoolctl import threadpool_limits

from reference_harness.data import benchmark
from reference_harness.data.task_folder import Folder
from reference_harness.formats.submission_terms import receipt_file
from reference_harness.receipt.cells import CellsJob, receipt_in


def main(threads: int, output: Path) -> None:
    """Compute the cells of the receipt in this folder, and write them."""
    _, entries = receipt_in(Path("row.json"))
    definition = benchmark.load(Path("data/benchmark.json"))
    source = Folder(Path("data"), definition)
    cells, kernels_and_threads = {}, set()
    for task, entry in entries.items():
        job = CellsJob(
            task,
            receipt_file(Path("receipt"), task),
            entry,
            definition,
            source,
            tuple(definition.regimes),
            canonical=True,
        )
        with threadpool_limits(limits=threads):
            result = job.execute()
        cells[task] = {
            regime: [cell.predictions_sha256, cell.confusion, cell.per_seed.model_dump()]
            for regime, cell in result.cells.regimes.items()
        }
        kernels_and_threads |= {
            (entry["kernel"], entry["threads"])
            for entry in result.libraries
            if entry["library"] == "openblas"
        }
    document = {"used": sorted(kernels_and_threads), "cells": cells}
    output.write_text(json.dumps(document), encoding="utf-8")


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
