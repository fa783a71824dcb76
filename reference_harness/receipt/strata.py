"""Write the data of a task from which an audit draws embeddings, by strata (groups of sequences).

`<task_id>.npz` contains these arrays, `<task_id>.txt` the sequences, one per line, training
sequences first. There are n training and m test sequences, s probes, d columns and c classes:

    train_labels, test_labels    (n,) and (m,) int64
    predicted_<regime>           (s, m) int64: by each probe in order; s is 1 in the full regime
    support_<regime>             indices of the training sequences of a few-shot regime, ascending
    weights_<regime>             (s, d, c) float64: the probes of a few-shot regime
    intercepts_<regime>          (s, c) float64
    weights, intercepts          (d, c) and (c,) float64: the probe of the full regime
    classes                      (c,) int64: the label of each column, in every regime
    record_<any of these>_<regime>
                                 predicted, weights and intercepts of the probes of record, in every
                                 regime, if this process has the scorer of record

As they contain labels, the sandbox of a contributor's code has no access to them.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import Labels, TaskData
from reference_harness.formats.files import write_bytes
from reference_harness.probe.logistic import Fit
from reference_harness.probe.optimum import SolvedProbe

ARRAYS_SUFFIX, SEQUENCES_SUFFIX = ".npz", ".txt"


class FittedRegime(NamedTuple):
    """The solved probes of a regime."""

    solved: list[SolvedProbe]
    rows: list[npt.NDArray[np.int64]]
    """Indices of the training sequences of each probe; empty in the full regime."""
    predicted: list[Labels]
    """(m,) predicted labels of each probe."""


Arrays = dict[str, Any]
"""Arrays by name, the arguments of `np.savez`."""


def _label_arrays(task_data: TaskData) -> Arrays:
    """Return the labels of both splits, by the names of their arrays."""
    return {"train_labels": task_data.train.labels, "test_labels": task_data.test.labels}


def _save(folder: Path, task_id: str, arrays: Arrays) -> None:
    """Write arrays to the `.npz` file of a task."""
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{task_id}{ARRAYS_SUFFIX}").open("wb") as stream:
        np.savez(stream, **arrays)


def write_labels(folder: Path, task_data: TaskData) -> None:
    """Write the labels of a task, in the format of `write_strata`; create the folder."""
    _save(folder, task_data.id, _label_arrays(task_data))


def write_strata(
    folder: Path,
    task_data: TaskData,
    regimes: Mapping[str, FittedRegime],
    fits_of_record: Mapping[str, Sequence[Fit]],
) -> None:
    """Write both files of a task; create the folder if necessary.

    Both mappings have the fits of each regime, `fits_of_record` those of record.
    """
    arrays = _label_arrays(task_data)
    for regime, fitted in regimes.items():
        arrays[f"predicted_{regime}"] = np.stack(fitted.predicted)
        if fitted.rows:
            arrays[f"support_{regime}"] = np.unique(np.concatenate(fitted.rows))
            arrays[f"weights_{regime}"] = np.stack([solution.weights for solution in fitted.solved])
            arrays[f"intercepts_{regime}"] = np.stack(
                [solution.intercepts for solution in fitted.solved]
            )
        else:
            arrays["weights"] = fitted.solved[0].weights
            arrays["intercepts"] = fitted.solved[0].intercepts
            arrays["classes"] = fitted.solved[0].classes
    for regime, fits in fits_of_record.items():
        arrays[f"record_predicted_{regime}"] = np.stack([fit.predictions for fit in fits])
        arrays[f"record_weights_{regime}"] = np.stack([fit.weights for fit in fits])
        arrays[f"record_intercepts_{regime}"] = np.stack([fit.intercepts for fit in fits])
    _save(folder, task_data.id, arrays)
    sequences = [*task_data.train.sequences, *task_data.test.sequences]
    write_bytes(
        folder / f"{task_data.id}{SEQUENCES_SUFFIX}",
        "".join(f"{sequence}\n" for sequence in sequences).encode(),
    )
