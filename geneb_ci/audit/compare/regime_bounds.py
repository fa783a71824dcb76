"""Upper bounds of how far altered test embeddings can have raised each regime's mean MCC.

They are computed from the drawn embeddings.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from geneb_ci.audit.compare.embedding_outcome import RegimeBound
from geneb_ci.receipt.direction import Labels, ProbeSet
from geneb_ci.receipt.draw import TaskShare, TaskStrata, TestDraw, draws_of_regime
from geneb_ci.receipt.raise_bound import CellDraw, largest_raise
from geneb_ci.receipt.rounding import receipt_values
from reference_harness.formats.benchmark import Benchmark

if TYPE_CHECKING:
    from geneb_ci.audit.compare.embeddings import DrawnTask

BOUND_SCALE = 1e4
"""A bound is rounded up to a multiple of 1 / `BOUND_SCALE`."""


def bounds_of(
    drawn_tasks: "Sequence[DrawnTask]",
    reruns: "Sequence[npt.NDArray[np.float32]]",
    shares: Mapping[str, TaskShare],
    benchmark: Benchmark,
) -> list[RegimeBound]:
    """Return the bound of each regime that was drawn from, in the order of the benchmark.

    `reruns` has the rerun embeddings of each task. Only draws by the seed of the plan count, not
    those of earlier audits.
    """
    task_ids = {task.task for task in drawn_tasks}
    categories = [
        category_tasks
        for category in benchmark.categories.values()
        if (category_tasks := [name for name in category if name in task_ids])
    ]
    task_weights = {
        name: 1 / len(categories) / len(category_tasks)
        for category_tasks in categories
        for name in category_tasks
    }
    bounds = []
    for regime in benchmark.regimes:
        cells: list[CellDraw] = []
        draws = flipped = 0
        for task, rerun in zip(drawn_tasks, reruns, strict=True):
            if regime not in task.strata.predicted:
                continue
            test_draws = draws_of_regime(task.strata, regime, shares[task.task])
            probe_set = _deciding_probes(task, regime)
            draws += len(test_draws)
            flipped += _flipped_draw_count(task, rerun, regime, test_draws, probe_set)
            cells += probe_draws(
                task.strata, regime, test_draws, probe_set.predicted, task_weights[task.task]
            )
        if cells:
            mean_raise_max = math.ceil(BOUND_SCALE * largest_raise(cells, flipped)) / BOUND_SCALE
            bounds.append(
                RegimeBound(regime=regime, draws=draws, flipped=flipped, raised=mean_raise_max)
            )
    return bounds


def _deciding_probes(task: "DrawnTask", regime: str) -> ProbeSet:
    """Return the probes of record of a regime, or the canonical probes if there are none."""
    return task.probe_sets.get(f"{regime}, record") or task.probe_sets[f"{regime}, canonical"]


def _flipped_draw_count(
    task: "DrawnTask",
    rerun: "npt.NDArray[np.float32]",
    regime: str,
    test_draws: Sequence[TestDraw],
    probe_set: ProbeSet,
) -> int:
    """Return how many draws a probe classifies right as committed, but wrong as rerun."""
    rounded = receipt_values(rerun, task.receipt_task.scale_log2)
    differs = np.asarray((rounded != task.committed).any(axis=1))
    is_sound = np.asarray(np.isfinite(rounded).all(axis=1))
    features = np.ldexp(rounded.astype(np.float64), task.receipt_task.scale_log2)
    index_by_row = {row: index for index, row in enumerate(task.rows)}
    flipped_count = 0
    for draw, row in zip(test_draws, task.drawn.rows[f"test {regime}"], strict=True):
        index, probe = index_by_row[row], probe_set.probes[draw.probe]
        was_right = (
            probe_set.predicted[draw.probe][row - task.receipt_task.train] == task.labels[index]
        )
        if was_right and differs[index]:
            # One at a time, since an embedding of large values could make all others ties.
            logits = features[index] @ probe.weights + probe.intercepts
            is_right = is_sound[index] and probe.classes[np.argmax(logits)] == task.labels[index]
            flipped_count += not is_right
    return flipped_count


def probe_draws(
    strata: TaskStrata,
    regime: str,
    test_draws: Sequence[TestDraw],
    predictions: Labels,
    weight: float,
) -> Iterator[CellDraw]:
    """Yield, for each probe of a task and regime, its confusion matrix and its numbers of draws.

    `predictions` are the (s, m) predictions of s probes on m test sequences; `weight` is the weight
    of the task in the mean of the regime.
    """
    probe_count = len(predictions)
    for probe, predicted in enumerate(predictions):
        classes = np.unique(np.concatenate([strata.labels, predicted]))
        matrix = np.zeros((len(classes), len(classes)), dtype=np.int64)
        np.add.at(
            matrix,
            (np.searchsorted(classes, strata.labels), np.searchsorted(classes, predicted)),
            1,
        )
        right_classes = np.searchsorted(classes, strata.labels[strata.right_rows(regime, probe)])
        class_first_draws = [draw.is_class_first for draw in test_draws if draw.probe == probe]
        yield CellDraw(
            matrix,
            np.bincount(right_classes, minlength=len(classes)),
            len(class_first_draws) - sum(class_first_draws),
            sum(class_first_draws),
            weight / probe_count,
        )
