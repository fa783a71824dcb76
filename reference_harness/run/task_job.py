"""Score one task in a worker process: read its embeddings, fit the probes of every regime."""

import dataclasses
import itertools
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import DIGEST_BYTES, Labels
from reference_harness.embedding.cache import Cache
from reference_harness.embedding.extractor_calls import unit_embeddings
from reference_harness.embedding.memory import is_out_of_memory, release_memory
from reference_harness.engine.blas import NumericalLibrary, loaded_libraries
from reference_harness.errors import LostEmbeddingsError, OptionError, ProbeError, StateError
from reference_harness.formats.base import Scores
from reference_harness.formats.measurements import EmbeddingFacts, UnitScale
from reference_harness.formats.run_record import Kind, PerSeed, Regime, TaskReceipt, Warned
from reference_harness.formats.scorer import ScorerRef
from reference_harness.probe import logistic, metrics
from reference_harness.probe.scorer import SCORER
from reference_harness.receipt.predictions import encoded_task
from reference_harness.receipt.rounding import RoundedEmbeddings, WidenedEmbeddings, rounded
from reference_harness.receipt.task_file import write_task

from .measure import embedding_facts

PerFit = TypeVar("PerFit")
"""Type of the result of one fit."""
UNIT_SCALE_SIZE_MAX = 1 << 22
"""Maximum size of the training features (sequences times columns) for a second score at unit scale:
a fit of a thousand steps then takes two seconds of a core, all fits under a minute."""


class ProbeSettings(Protocol):
    """The interface of the settings of probes."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """The benchmark's seeds, in its order."""

    @property
    def few_shot_k(self) -> Mapping[str, int]:
        """Training sequences per class by regime; a regime without an entry uses all sequences."""

    @property
    def device(self) -> logistic.Device:
        """The device of the probe."""


class ScoredRegime(NamedTuple):
    """The scores of one regime, with its fits and predictions."""

    regime: Regime
    fits: list[logistic.Fit]
    """One per seed, or a single one for all seeds if no sequences are drawn."""
    predictions: list[Labels]
    """The (m,) predicted labels of each seed, of which the record has a digest."""


@dataclass(frozen=True)
class ProbeTaskJob:
    """Inputs of scoring a task. They are pickled, so the embeddings stay in the cache."""

    task_id: str
    cache: Path | str
    key_parts: Mapping[str, object]
    """Everything that determines an embedding except the sequence: the key of the cache."""
    train_digests: bytes
    train_labels: Labels
    test_digests: bytes
    test_labels: Labels
    regimes: tuple[str, ...]
    seeds: tuple[int, ...]
    few_shot_k: Mapping[str, int]
    device: logistic.Device = logistic.CPU
    receipt: Path | None = None
    """Folder to which the rounded embeddings are written as a receipt; None for no receipt."""
    unit_regime: str | None = None
    """The regime that is scored a second time, with each embedding at unit scale."""

    def execute(self) -> "ProbeResult | ProbeFailure":
        """Return the scores of the task, or a failure, so that other tasks continue."""
        notes: list[str] = []
        try:
            cache = Cache(self.cache, self.key_parts)
            notes = cache.damage_notes
            return scored_task(self, cache)
        except (OptionError, ProbeError, StateError) as error:
            is_lost = isinstance(error, LostEmbeddingsError)
            return ProbeFailure(
                self.task_id, str(error), lost_embeddings=is_lost, notes=tuple(notes)
            )
        except Exception as error:  # noqa: BLE001 - libraries of the probe may raise anything
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            advice = (
                "leave out --probe-device" if self.device.is_accelerator else "use fewer --jobs"
            )
            fix = f"; {advice}" if is_out_of_memory(error) else ""
            return ProbeFailure(self.task_id, f"{self.task_id}: the probe failed: {reason}{fix}")
        finally:
            if self.device.is_accelerator:
                release_memory()  # for the embedder, which uses the same device


@dataclass(frozen=True)
class ProbeResult:
    """The scores of one task, computed by a worker."""

    task_id: str
    dim: int
    dtype: str
    regimes: dict[str, Regime]
    seconds: float
    libraries: list[NumericalLibrary]
    scorer: ScorerRef
    embeddings: EmbeddingFacts
    unit_scale: UnitScale | None = None
    token_budgets: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    """One sentence per damaged shard that was renamed."""
    receipt: TaskReceipt | None = None
    predictions: bytes | None = None
    """The task's part of `predictions.bin`; None without a receipt."""


@dataclass(frozen=True)
class ProbeFailure:
    """A task that a worker could not probe."""

    task_id: str
    reason: str
    """A sentence that begins with the task's id or a file."""
    lost_embeddings: bool = False
    """Whether the cache lacks embeddings, so that computing them again helps."""
    notes: tuple[str, ...] = ()


def scored_task(job: ProbeTaskJob, cache: Cache | None = None) -> ProbeResult:
    """Return the scores of one task.

    Each split's embeddings are held in memory once, rounded and widened again. Raise ProbeError or
    StateError, which name the task or the file.
    """
    started = time.perf_counter()
    cache = cache or Cache(job.cache, job.key_parts)
    splits = [cache.read(_digests_in(job.train_digests)), cache.read(_digests_in(job.test_digests))]
    dtype, train_count, receipt = splits[0].dtype.name, len(splits[0]), None
    try:
        embeddings = rounded(splits)
        splits.clear()  # a large task fills most of the memory
        if job.receipt is not None:
            receipt = write_task(job.receipt, job.task_id, embeddings, train_count)
        problem = problem_of(embeddings, train_count, job.train_labels, job.test_labels)
        digests = _digests_in(job.train_digests) + _digests_in(job.test_digests)
        del embeddings
        facts = embedding_facts([problem.train, problem.test], digests)
        scored = {name: score_regime(problem, name, job) for name in job.regimes}
        unit_scale = at_unit_scale(problem, job)
    except ProbeError as error:
        msg = f"{job.task_id}: {error}"
        raise ProbeError(msg) from error
    return ProbeResult(
        job.task_id,
        problem.train.shape[1],
        dtype,
        {name: scored_regime.regime for name, scored_regime in scored.items()},
        time.perf_counter() - started,
        loaded_libraries(),
        scorer_of(job.device),
        facts,
        unit_scale,
        tuple(sorted(cache.token_budgets)),
        tuple(cache.damage_notes),
        receipt,
        None if receipt is None else task_section(problem, scored.values()),
    )


def task_section(problem: logistic.Problem, regimes: Iterable[ScoredRegime]) -> bytes:
    """Return a scored task's part of `predictions.bin`: the predictions of its fits of record.

    A regime has one fit per seed if embeddings are drawn, else one for all seeds.
    """
    fits = [(scored, len(scored.fits)) for scored in regimes]
    of_record = [labels for scored, count in fits for labels in scored.predictions[:count]]
    classes = np.unique(np.concatenate([problem.train_labels, problem.test_labels]))
    return encoded_task(classes, problem.test_labels, of_record)


def at_unit_scale(problem: logistic.Problem, job: ProbeTaskJob) -> UnitScale | None:
    """Return the scores of one regime with each embedding divided by its root mean square.

    Return None if it was not requested, or if the task has more numbers than `UNIT_SCALE_SIZE_MAX`.
    """
    if job.unit_regime is None or problem.train.size > UNIT_SCALE_SIZE_MAX:
        return None
    unit_problem = dataclasses.replace(
        problem, train=unit_embeddings(problem.train), test=unit_embeddings(problem.test)
    )
    scores = score_regime(unit_problem, job.unit_regime, job).regime.scores
    return UnitScale(regime=job.unit_regime, scores=scores)


def problem_of(
    embeddings: RoundedEmbeddings, train_count: int, train_labels: Labels, test_labels: Labels
) -> logistic.Problem:
    """Return the problem to score: the first `train_count` embeddings are the training split.

    A run, an audit and the recomputation of a receipt all score its result.
    """
    features = WidenedEmbeddings(*embeddings)
    return logistic.Problem(
        features[:train_count], train_labels, features[train_count:], test_labels
    )


def scorer_of(device: logistic.Device) -> ScorerRef:
    """Return the scorer of this process: the scorer of record, or another one and the reason."""
    scorer = SCORER.in_use()
    if not device.torch:
        return scorer
    reason = (
        f"the probe ran on {device.name} with scikit-learn's array API: leave out --probe-device"
    )
    return scorer.model_copy(update={"digest": None, "reason": reason})


def _digests_in(joined_digests: bytes) -> list[bytes]:
    """Return joined digests as a list of 16 bytes each."""
    return [
        joined_digests[i : i + DIGEST_BYTES] for i in range(0, len(joined_digests), DIGEST_BYTES)
    ]


def score_regime(
    problem: logistic.Problem, regime_name: str, settings: ProbeSettings
) -> ScoredRegime:
    """Return the scores of one task in one regime. Raise ProbeError if a probe cannot be fitted."""
    started = time.perf_counter()
    rows = fit_indices_of(problem, regime_name, settings)
    fits = logistic.fit_all(problem, rows, settings.device)
    warnings = _warnings(problem, fits, settings, regime_name)
    fits_by_seed = result_per_seed(fits, settings)
    predictions = [fit.predictions for fit in fits_by_seed]
    scores_by_seed, matrices, classes = metrics_by_seed(problem, predictions)
    seconds = time.perf_counter() - started
    scored = Regime(
        scores=Scores(**metrics.mean_scores(scores_by_seed)._asdict()),
        per_seed=metric_columns(scores_by_seed),
        classes=classes.tolist(),
        confusion=[matrix.tolist() for matrix in matrices],
        predictions_sha256=metrics.predictions_sha256(predictions),
        rows=[fit.rows for fit in fits_by_seed],
        iterations=[fit.iterations for fit in fits_by_seed],
        warnings=warnings,
        seconds=round(seconds, 6),
    )
    return ScoredRegime(scored, fits, predictions)


def fit_indices_of(
    problem: logistic.Problem, name: str, settings: ProbeSettings
) -> list[npt.NDArray[np.int64] | None]:
    """Return the indices of the training sequences of each fit of a regime, None for all."""
    return logistic.fit_indices(
        problem.train_labels, name, list(settings.seeds), settings.few_shot_k
    )


def result_per_seed(per_fit: list[PerFit], settings: ProbeSettings) -> list[PerFit]:
    """Return one result per seed: if no sequences are drawn, the single result for every seed."""
    return per_fit * len(settings.seeds) if len(per_fit) == 1 else per_fit


def metrics_by_seed(
    problem: logistic.Problem, predictions: list[Labels]
) -> tuple[list[metrics.Scores], list[metrics.ConfusionMatrix], Labels]:
    """Return the metrics and confusion matrix of each seed's predictions, and the task's labels."""
    classes = np.unique(np.concatenate([problem.train_labels, problem.test_labels]))
    matrices = [metrics.confusion_matrix(problem.test_labels, p, classes) for p in predictions]
    return [metrics.scores_of(matrix) for matrix in matrices], matrices, classes


def metric_columns(scores_by_seed: list[metrics.Scores]) -> PerSeed:
    """Return the values of each metric, one per seed."""
    mcc, acc, f1 = (list(column) for column in zip(*scores_by_seed, strict=True))
    return PerSeed(MCC=mcc, Acc=acc, F1=f1)


def _warnings(
    problem: logistic.Problem, fits: list[logistic.Fit], settings: ProbeSettings, regime: str
) -> list[Warned]:
    """Return warnings about the scores of a regime, one per kind, with the affected seeds."""
    seeds = list(settings.seeds)
    warnings = []

    def warn(kind: Kind, message: str, is_affected: list[bool]) -> None:
        if any(is_affected):
            seeds_affected = (
                seeds if len(is_affected) == 1 else list(itertools.compress(seeds, is_affected))
            )
            warnings.append(Warned(kind=kind, message=message, seeds=seeds_affected))

    warn(
        "not-converged",
        "the solver did not reach its tolerance: it stopped after "
        f"{logistic.ITERATIONS_MAX} steps, or at the limit of its precision",
        [not fit.converged for fit in fits],
    )
    warn(
        "constant-prediction",
        "every test sequence got the same label, so MCC is 0: the features may be too small",
        [fit.is_constant for fit in fits],
    )
    unseen = sorted(set(problem.test_labels.tolist()) - set(problem.train_labels.tolist()))
    warn("untrained-class", f"test labels that no training sequence has: {unseen}", [bool(unseen)])
    if k := settings.few_shot_k.get(regime):
        counts = np.unique(problem.train_labels, return_counts=True)[1]
        small_count = int((counts < k).sum())
        warn(
            "small-class",
            f"classes with fewer than {k} training sequences: {small_count}",
            [bool(small_count)],
        )
    for note in sorted({note for fit in fits for note in fit.notes}):
        warn("scikit-learn", note, [note in fit.notes for fit in fits])
    return warnings
