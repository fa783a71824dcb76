"""Strata of a draw of embeddings: labels, support sequences, probes at their optimum.

`<task_id>.npz` has these arrays, `<task_id>.txt` the sequences, one a line, training sequences
first:

    train_labels, test_labels    (n,) and (m,) int64
    predicted_<regime>           (s, m) int64: by each probe in turn, one where all seeds agree
    support_<regime>             training sequences of the probes of a few-shot regime, ascending
    weights_<regime>             (s, d, c) float64: the probes of a few-shot regime
    intercepts_<regime>          (s, c) float64
    weights, intercepts          (d, c) and (c,) float64: the probe of the full regime
    classes                      (c,) int64: the label of each column, in every regime
    record_<any of these>_<regime>
                                 predicted, weights and intercepts of the probes of record, of every
                                 regime, where this process has the scorer of record

Labels are in them: they stay outside of the sandbox in which a contributor's code runs.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness.formats.files import write_bytes
from reference_harness.optimum import SolvedProbe
from reference_harness.probe import Fit
from reference_harness.tasks import Labels, TaskData

ARRAYS, SEQUENCES = ".npz", ".txt"


class FittedRegime(NamedTuple):
    """The probes of a regime."""

    solved: list[SolvedProbe]
    rows: list[npt.NDArray[np.int64]]
    """Training sequences of each; none where all sequences are used."""
    predicted: list[Labels]
    """(m,) labels of each."""


Arrays = dict[str, Any]
"""Name to array, as `np.savez` takes them."""


def _labels(data: TaskData) -> Arrays:
    return {"train_labels": data.train.labels, "test_labels": data.test.labels}


def _save(folder: Path, task_id: str, arrays: Arrays) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{task_id}{ARRAYS}").open("wb") as stream:
        np.savez(stream, **arrays)


def write_labels(folder: Path, data: TaskData) -> None:
    """Write the labels of a task alone, as `write_strata` does; the folder is made."""
    _save(folder, data.id, _labels(data))


def write_strata(
    folder: Path,
    data: TaskData,
    regimes: Mapping[str, FittedRegime],
    record: Mapping[str, Sequence[Fit]],
) -> None:
    """Write both files of a task; the folder is made where there is none.

    `record` has the fits of record of each regime.
    """
    arrays = _labels(data)
    for name, fitted in regimes.items():
        arrays[f"predicted_{name}"] = np.stack(fitted.predicted)
        if fitted.rows:
            arrays[f"support_{name}"] = np.unique(np.concatenate(fitted.rows))
            arrays[f"weights_{name}"] = np.stack([solution.weights for solution in fitted.solved])
            arrays[f"intercepts_{name}"] = np.stack(
                [solution.intercepts for solution in fitted.solved]
            )
        else:
            arrays["weights"] = fitted.solved[0].weights
            arrays["intercepts"] = fitted.solved[0].intercepts
            arrays["classes"] = fitted.solved[0].classes
    for name, fits in record.items():
        arrays[f"record_predicted_{name}"] = np.stack([fit.predictions for fit in fits])
        arrays[f"record_weights_{name}"] = np.stack([fit.weights for fit in fits])
        arrays[f"record_intercepts_{name}"] = np.stack([fit.intercepts for fit in fits])
    _save(folder, data.id, arrays)
    sequences = [*data.train.sequences, *data.test.sequences]
    write_bytes(
        folder / f"{data.id}{SEQUENCES}",
        "".join(f"{sequence}\n" for sequence in sequences).encode(),
    )
