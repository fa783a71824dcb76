"""What an audit draws rows of a receipt by: canonical predictions, labels, support rows, weights.

`<task_id>.npz` has these arrays, `<task_id>.txt` the sequences, one a line, training rows first:

    train_labels, test_labels    (n,) and (m,) int64
    predicted_<regime>           (s, m) int64: a row for each probe, one where all seeds agree
    support_<regime>             training rows of the probes of a few-shot regime, ascending
    weights_<regime>             (s, d, c) float64: the probes of a few-shot regime
    intercepts_<regime>          (s, c) float64
    weights, intercepts          (d, c) and (c,) float64: the probe of the full regime
    classes                      (c,) int64: the label of each column, in every regime

Labels are in them: they stay outside of the sandbox in which a contributor's code runs.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness.canonical import Solved
from reference_harness.formats.files import write_bytes
from reference_harness.tasks import Labels, TaskData

ARRAYS, SEQUENCES = ".npz", ".txt"


class FittedRegime(NamedTuple):
    """The probes of a regime."""

    solved: list[Solved]
    rows: list[npt.NDArray[np.int64]]
    """Training rows of each; none where all rows are used."""
    predicted: list[Labels]
    """(m,) labels of each."""


def write_strata(folder: Path, data: TaskData, regimes: Mapping[str, FittedRegime]) -> None:
    """Write both files of a task; the folder is made where there is none."""
    found: dict[str, npt.NDArray[np.generic]] = {
        "train_labels": data.train.labels,
        "test_labels": data.test.labels,
    }
    for name, one in regimes.items():
        found[f"predicted_{name}"] = np.stack(one.predicted)
        if one.rows:
            found[f"support_{name}"] = np.unique(np.concatenate(one.rows))
            found[f"weights_{name}"] = np.stack([each.weights for each in one.solved])
            found[f"intercepts_{name}"] = np.stack([each.intercepts for each in one.solved])
        else:
            found["weights"] = one.solved[0].weights
            found["intercepts"] = one.solved[0].intercepts
            found["classes"] = one.solved[0].classes
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / f"{data.id}{ARRAYS}").open("wb") as stream:
        np.savez(stream, **found)  # type: ignore[arg-type]  # arrays by name, as it takes them
    both = [*data.train.sequences, *data.test.sequences]
    write_bytes(folder / f"{data.id}{SEQUENCES}", "".join(f"{one}\n" for one in both).encode())
