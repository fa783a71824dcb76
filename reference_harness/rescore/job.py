"""One job of a rescoring in a worker process: score embeddings of a task, or jittered copies."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import Labels
from reference_harness.embedding import noise
from reference_harness.embedding.memory import is_out_of_memory
from reference_harness.engine.blas import NumericalLibrary, loaded_libraries
from reference_harness.errors import OutOfMemoryError, ProbeError
from reference_harness.formats.base import Scores
from reference_harness.formats.rescored import Decisions, JitteredCopy
from reference_harness.formats.scorer import ScorerRef
from reference_harness.formats.submission_terms import Dtype
from reference_harness.probe import decisions, logistic, stopping_points
from reference_harness.probe.scorer import SCORER
from reference_harness.receipt.rounding import common_scale_log2, rounded_at, widened
from reference_harness.run.task_job import (
    ScoredRegime,
    fit_indices_of,
    metric_columns,
    metrics_by_seed,
    result_per_seed,
    score_regime,
)

from .further_sequences import FurtherFiles, read_further_embeddings

Positions = npt.NDArray[np.int64]
"""Indices of rows of a matrix."""
FitRows = npt.NDArray[np.int64] | None
"""Indices of the training sequences of a fit; None for all."""


@dataclass(frozen=True)
class TaskPart:
    """Embeddings and labels of one task. It is pickled, so the matrix stays in its file."""

    task_id: str
    embeddings: Path
    """`.npy` file of an (n, d) matrix."""
    rows: Positions
    """Indices in the matrix of the task's embeddings, each once.

    Those that few-shot regimes need come first.
    """
    few_shot_count: int
    """Number of embeddings that the few-shot regimes need."""
    train: Positions
    """(n,) indices into `rows`, one per training sequence."""
    train_labels: Labels
    test: Positions
    """(m,) indices into `rows`, one per test sequence."""
    test_labels: Labels
    regimes: tuple[str, ...]
    seeds: tuple[int, ...]
    few_shot_k: Mapping[str, int]
    is_rounded: bool
    """Whether embeddings are rounded to float16 before scoring, as for scores of record."""
    device: logistic.Device = logistic.CPU

    def matrix(self, *, is_few_shot: bool = False) -> noise.Embeddings:
        """Return the embeddings in the order of `rows`, or only those of few-shot regimes."""
        complete_matrix = np.load(self.embeddings, mmap_mode="r", allow_pickle=False)
        rows = self.rows[: self.few_shot_count] if is_few_shot else self.rows
        return np.ascontiguousarray(complete_matrix[rows])

    def scale(self, embeddings: noise.Embeddings) -> int | None:
        """Return the exponent of a task's scale, from all its embeddings; None if not rounded.

        Raise ProbeError for values that cannot be rounded.
        """
        return common_scale_log2([embeddings]) if self.is_rounded else None

    def problem(self, embeddings: noise.Embeddings, scale: int | None) -> logistic.Problem:
        """Return the probe's problem from all embeddings and the result of `scale`."""
        embeddings = scored_features(embeddings, scale)
        return logistic.Problem(
            embeddings[self.train], self.train_labels, embeddings[self.test], self.test_labels
        )

    def few_shot_problem(
        self, embeddings: noise.Embeddings, fit_rows: list[FitRows], scale: int | None
    ) -> tuple[logistic.Problem, list[FitRows]]:
        """Return the problem with only the drawn training sequences, and their indices per fit."""
        embeddings = scored_features(embeddings, scale)
        used_rows = np.unique(np.concatenate([rows for rows in fit_rows if rows is not None]))
        small_problem = logistic.Problem(
            embeddings[self.train[used_rows]],
            self.train_labels[used_rows],
            embeddings[self.test],
            self.test_labels,
        )
        return small_problem, [
            None if rows is None else np.searchsorted(used_rows, rows) for rows in fit_rows
        ]


def scored_features(embeddings: noise.Embeddings, scale: int | None) -> noise.Embeddings:
    """Return (n, d) embeddings rounded to float16 at 2^scale, unchanged if `scale` is None."""
    return embeddings if scale is None else widened(rounded_at([embeddings], scale), scale)


class BaseResult(NamedTuple):
    """The scores of a task's original embeddings, with which jittered copies are compared."""

    task_id: str
    regimes: dict[str, ScoredRegime]
    scores_at_stops: dict[str, list[list[Scores]]]
    """Scores at every possible stopping point by regime, one list per fit."""
    libraries: list[NumericalLibrary]
    scorer: ScorerRef
    scale: int | None
    """Exponent of the scale of the rounded embeddings; None if they were not rounded."""
    decisions: Decisions | None


@dataclass(frozen=True)
class BaseJob:
    """Scores one task's original embeddings."""

    part: TaskPart
    regimes: tuple[str, ...]
    """Regimes to score; decisions on further sequences are those of the probes of all regimes."""
    further: FurtherFiles | None = None
    """Further sequences and their embeddings; None if there are none."""
    other_draws: str | None = None
    """Text from which the seeds of other few-shot draws are derived; None for no other draws."""

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self.part.task_id

    def execute(self) -> BaseResult:
        """Return the scores of the regimes. Raise ProbeError, which names the task."""
        part = self.part
        with _as_probe_error(part.task_id):
            embeddings = part.matrix()
            scale = part.scale(embeddings)
            problem = part.problem(embeddings, scale)
            del embeddings
            scored_regimes = {name: score_regime(problem, name, part) for name in self.regimes}
            predictions_at_stops = {
                name: stopping_points.predictions_at_stops(
                    problem, fit_indices_of(problem, name, part), scored.fits
                )
                for name, scored in scored_regimes.items()
            }
            all_decisions = None
            if self.further is not None:
                further_embeddings = read_further_embeddings(self.further, problem, scale)
                fit_rows = {name: fit_indices_of(problem, name, part) for name in part.regimes}
                all_decisions = decisions.further_decisions(
                    problem, further_embeddings, fit_rows, self._few_shot_draws()
                )
        scores_at_stops = {
            name: [
                [Scores(**scores._asdict()) for scores in metrics_by_seed(problem, fit)[0]]
                if fit
                else []
                for fit in fits
            ]
            for name, fits in predictions_at_stops.items()
        }
        return BaseResult(
            part.task_id,
            scored_regimes,
            scores_at_stops,
            loaded_libraries(),
            SCORER.in_use(),
            scale,
            all_decisions,
        )

    def _few_shot_draws(self) -> dict[str, decisions.FewShotDraws]:
        """Return the drawn training sequences by few-shot regime; {} without other draws."""
        part = self.part
        if self.other_draws is None:
            return {}
        return decisions.few_shot_draws(
            part.train_labels, part.few_shot_k, part.seeds, self.other_draws
        )


class CopyResult(NamedTuple):
    """The scores of some copies of one task in one regime."""

    task_id: str
    regime: str
    is_stressed: bool
    first_copy: int
    """Number of the first of these copies."""
    copies: list[JitteredCopy]


@dataclass(frozen=True)
class CopyJob:
    """Scores jittered copies `first_copy` to `last_copy` of one task in one regime.

    Their predictions are compared with the base: those of the original embeddings.
    """

    part: TaskPart
    regime: str
    dtype: Dtype
    seed: int
    is_stressed: bool
    first_copy: int
    last_copy: int
    """Number of the last jittered copy, which is scored too."""
    scale: int | None
    """Exponent of the scale of the base, at which copies are rounded; None if they are not."""
    base: list[Labels]
    """Predictions of the base, one array per seed."""

    @property
    def task_id(self) -> str:
        """The id of the task."""
        return self.part.task_id

    def execute(self) -> CopyResult:
        """Return the scores of each copy, refitted. Raise ProbeError, which names the task."""
        copies = []
        with _as_probe_error(f"{self.task_id}: {self.regime}: a jittered copy"):
            for problem, rows in self._copies():
                fits = result_per_seed(logistic.fit_all(problem, rows, self.part.device), self.part)
                copies.append(jittered_copy(problem, [fit.predictions for fit in fits], self.base))
        return CopyResult(self.task_id, self.regime, self.is_stressed, self.first_copy, copies)

    def _copies(self) -> Iterator[tuple[logistic.Problem, list[FitRows]]]:
        """Yield the probe's problem of each jittered copy, and the indices of each fit."""
        part = self.part
        is_few_shot = self.regime in part.few_shot_k
        embeddings = part.matrix(is_few_shot=is_few_shot)
        seeds = list(part.seeds)
        fit_rows = logistic.fit_indices(part.train_labels, self.regime, seeds, part.few_shot_k)
        for number in range(self.first_copy, self.last_copy + 1):
            factor = noise.STRESS_FACTOR if self.is_stressed else 1.0
            copy_noise = noise.Noise(self.dtype, self.seed, number, factor)
            jittered = noise.jitter(embeddings, copy_noise, part.task_id)
            if is_few_shot:
                yield part.few_shot_problem(jittered, fit_rows, self.scale)
            else:
                problem = part.problem(jittered, self.scale)
                yield problem, fit_indices_of(problem, self.regime, part)


@contextmanager
def _as_probe_error(part_name: str) -> Iterator[None]:
    """Raise any error of the probe's libraries as a ProbeError that begins with `part_name`."""
    try:
        yield
    except ProbeError as error:
        msg = f"{part_name}: {error}"
        raise (OutOfMemoryError if is_out_of_memory(error) else ProbeError)(msg) from error
    except Exception as error:  # libraries may raise anything for untrusted numbers
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        error_class = OutOfMemoryError if is_out_of_memory(error) else ProbeError
        msg = f"{part_name}: the probe failed: {cause}"
        raise error_class(msg) from error


def jittered_copy(
    problem: logistic.Problem, predictions: list[Labels], base: list[Labels]
) -> JitteredCopy:
    """Return the scores of one copy and, per seed, how many of its (m,) predictions changed."""
    scores_by_seed, _, _ = metrics_by_seed(problem, predictions)
    flips = [
        int((labels != base_labels).sum())
        for labels, base_labels in zip(predictions, base, strict=True)
    ]
    return JitteredCopy(per_seed=metric_columns(scores_by_seed), flips=flips)
