"""One piece of a rescoring in a worker process: the base of a task, or some jittered copies."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from . import decisions, halts, noise, probe
from .engine.threads import Library, libraries
from .errors import OutOfMemoryError, ProbeError
from .formats.base import Scores
from .formats.rescored import Decisions, JitteredCopy
from .formats.scorer import ScorerRef
from .formats.submission_terms import Dtype
from .further import FurtherFiles, read_further_embeddings
from .job import ScoredRegime, each_seed, fit_indices_of, metric_columns, regime, score
from .memory import is_out_of_memory
from .receipt.rounding import rounded_at, scale_for, widened
from .scorer import SCORER
from .tasks import Labels

Positions = npt.NDArray[np.int64]
Chosen = npt.NDArray[np.int64] | None


@dataclass(frozen=True)
class TaskPart:
    """Embeddings and labels of one task: small, for it is pickled; the matrix stays in its file."""

    task_id: str
    embeddings: Path
    """`.npy` of an (n, d) matrix."""
    rows: Positions
    """Embeddings of the matrix that the task uses, each once: first those that few-shot regimes
    need."""
    few_shot_count: int
    """How many those are."""
    train: Positions
    """(n,) indices into `rows`, one per training sequence."""
    train_labels: Labels
    test: Positions
    test_labels: Labels
    regimes: tuple[str, ...]
    seeds: tuple[int, ...]
    few_shot_k: Mapping[str, int]
    is_rounded: bool
    """Whether embeddings are rounded to float16 before they are scored, as those of record are."""
    device: probe.Device = probe.CPU

    def matrix(self, *, few: bool = False) -> noise.Embeddings:
        """Return the embeddings in the order of `rows`, or the first `few` of them."""
        whole = np.load(self.embeddings, mmap_mode="r", allow_pickle=False)
        numbers = self.rows[: self.few_shot_count] if few else self.rows
        return np.ascontiguousarray(whole[numbers])

    def scale(self, values: noise.Embeddings) -> int | None:
        """Return the scale of the task, all of whose embeddings are in `values`; None unrounded.

        Raises ProbeError for values that cannot be rounded.
        """
        return scale_for([values]) if self.is_rounded else None

    def problem(self, values: noise.Embeddings, scale: int | None) -> probe.Problem:
        """Return the probe's problem; `values` are all embeddings, `scale` comes from `scale`."""
        values = features(values, scale)
        return probe.Problem(
            values[self.train], self.train_labels, values[self.test], self.test_labels
        )

    def few_shot_problem(
        self, values: noise.Embeddings, drawn: list[Chosen], scale: int | None
    ) -> tuple[probe.Problem, list[Chosen]]:
        """Return the problem with the training sequences that a seed draws, and the draws in it."""
        values = features(values, scale)
        used = np.unique(np.concatenate([chosen for chosen in drawn if chosen is not None]))
        cut = probe.Problem(
            values[self.train[used]],
            self.train_labels[used],
            values[self.test],
            self.test_labels,
        )
        return cut, [None if chosen is None else np.searchsorted(used, chosen) for chosen in drawn]


def features(values: noise.Embeddings, scale: int | None) -> noise.Embeddings:
    """Return (n, d) embeddings as they are scored: rounded to float16 at a scale, or not."""
    return values if scale is None else widened(rounded_at([values], scale), scale)


class BaseResult(NamedTuple):
    """The scores of the embeddings as they came."""

    task_id: str
    regimes: dict[str, ScoredRegime]
    halts: dict[str, list[list[Scores]]]
    """Regime to the scores at every possible stopping point, one list per fit."""
    libraries: list[Library]
    scorer: ScorerRef
    scale: int | None
    """Scale of the rounded embeddings; None where they were not rounded."""
    decisions: Decisions | None


@dataclass(frozen=True)
class BaseJob:
    """Score one task's embeddings as they came."""

    part: TaskPart
    regimes: tuple[str, ...]
    """Those that are scored; the probes of every regime decide on further sequences."""
    further: FurtherFiles | None = None
    """Sequences beside those of the task, and their embeddings."""
    other_draws: str | None = None
    """Text that decides other draws of few-shot sequences; None for none."""

    @property
    def task_id(self) -> str:
        """The task."""
        return self.part.task_id

    def execute(self) -> BaseResult:
        """Probe the regimes. Raises ProbeError, which names the task."""
        part = self.part
        with _refusing(part.task_id):
            values = part.matrix()
            scale = part.scale(values)
            problem = part.problem(values, scale)
            del values
            scored_regimes = {name: regime(problem, name, part) for name in self.regimes}
            stops = {
                name: halts.predictions_at_halts(
                    problem, fit_indices_of(problem, name, part), scored.fits
                )
                for name, scored in scored_regimes.items()
            }
            decided = None
            if self.further is not None:
                beside = read_further_embeddings(self.further, problem, scale)
                drawn = {name: fit_indices_of(problem, name, part) for name in part.regimes}
                decided = decisions.decide(problem, beside, drawn, self._few_shot())
        halted = {
            name: [
                [Scores(**scores._asdict()) for scores in score(problem, fit)[0]] if fit else []
                for fit in fits
            ]
            for name, fits in stops.items()
        }
        return BaseResult(
            part.task_id, scored_regimes, halted, libraries(), SCORER.in_use(), scale, decided
        )

    def _few_shot(self) -> dict[str, decisions.FewShotDraws]:
        part = self.part
        if self.other_draws is None:
            return {}
        return decisions.few_shot_draws(
            part.train_labels, part.few_shot_k, part.seeds, self.other_draws
        )


class CopyResult(NamedTuple):
    """Some copies of one task in one regime."""

    task_id: str
    regime: str
    stressed: bool
    first: int
    """Number of the first copy."""
    copies: list[JitteredCopy]


@dataclass(frozen=True)
class CopyJob:
    """Score jittered copies `first` to `last` of one task in one regime against its base."""

    part: TaskPart
    regime: str
    dtype: Dtype
    seed: int
    stressed: bool
    first: int
    last: int
    scale: int | None
    """That of the base."""
    base: list[Labels]
    """Predictions of the base."""

    @property
    def task_id(self) -> str:
        """The task."""
        return self.part.task_id

    def execute(self) -> CopyResult:
        """Refit on each copy. Raises ProbeError, which names the task."""
        copies = []
        with _refusing(f"{self.task_id}: {self.regime}: a jittered copy"):
            for problem, rows in self._copies():
                fits = each_seed(probe.run(problem, rows, self.part.device), self.part)
                copies.append(copy_of(problem, [fit.predictions for fit in fits], self.base))
        return CopyResult(self.task_id, self.regime, self.stressed, self.first, copies)

    def _copies(self) -> Iterator[tuple[probe.Problem, list[Chosen]]]:
        part = self.part
        few = self.regime in part.few_shot_k
        values = part.matrix(few=few)
        seeds = list(part.seeds)
        drawn = probe.fit_indices(part.train_labels, self.regime, seeds, part.few_shot_k)
        for number in range(self.first, self.last + 1):
            times = noise.STRESS if self.stressed else 1.0
            spec = noise.Noise(self.dtype, self.seed, number, times)
            moved = noise.jitter(values, spec, part.task_id)
            if few:
                yield part.few_shot_problem(moved, drawn, self.scale)
            else:
                problem = part.problem(moved, self.scale)
                yield problem, fit_indices_of(problem, self.regime, part)


@contextmanager
def _refusing(part_name: str) -> Iterator[None]:
    """Make one ProbeError, which begins with `what`, of whatever the probe's libraries raise."""
    try:
        yield
    except ProbeError as error:
        msg = f"{part_name}: {error}"
        raise (OutOfMemoryError if is_out_of_memory(error) else ProbeError)(msg) from error
    except Exception as error:  # untrusted numbers make a library raise what it likes
        cause = " ".join(f"{type(error).__name__}: {error}".split())
        kind = OutOfMemoryError if is_out_of_memory(error) else ProbeError
        msg = f"{part_name}: the probe failed: {cause}"
        raise kind(msg) from error


def copy_of(problem: probe.Problem, predictions: list[Labels], base: list[Labels]) -> JitteredCopy:
    """Return scores and flips of one copy's predictions, one (m,) array a seed."""
    triples, _, _ = score(problem, predictions)
    flips = [
        int((labels != base_labels).sum())
        for labels, base_labels in zip(predictions, base, strict=True)
    ]
    return JitteredCopy(per_seed=metric_columns(triples), flips=flips)
