"""One task in a worker process: read its embeddings, probe every regime, hand back plain values."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from . import canonical, metrics, probe
from .cache import Cache, Rows
from .engine.threads import Library, libraries
from .errors import ProbeError
from .record import Canonical, Kind, PerSeed, Regime, Triple, Warned
from .tasks import DIGEST_BYTES, Labels

NO_CANONICAL = "asked for with --no-canonical"


@dataclass(frozen=True)
class Job:
    """What a worker needs: small, for it is pickled; the embeddings stay in the cache."""

    task_id: str
    cache: Path
    key_parts: Mapping[str, object]
    train_digests: bytes
    train_labels: Labels
    test_digests: bytes
    test_labels: Labels
    regimes: tuple[str, ...]
    seeds: tuple[int, ...]
    few_shot_k: Mapping[str, int]
    canonical: bool = True
    device: probe.Device = probe.CPU


@dataclass(frozen=True)
class Probed:
    """What a worker hands back."""

    task_id: str
    dim: int
    dtype: str
    regimes: dict[str, Regime]
    seconds: float
    libraries: list[Library]


def execute(job: Job) -> Probed:
    """Probe one task.

    Each split's embeddings are held once, in the type the extractor gave. Raises ProbeError or
    StateError, which name the task or the file.
    """
    started = time.perf_counter()
    cache = Cache(job.cache, job.key_parts)
    problem = probe.Problem(
        cache.read(_cut(job.train_digests)),
        job.train_labels,
        cache.read(_cut(job.test_digests)),
        job.test_labels,
    )
    try:
        regimes = {regime: _regime(problem, regime, job) for regime in job.regimes}
    except ProbeError as error:
        msg = f"{job.task_id}: {error}"
        raise ProbeError(msg) from error
    return Probed(
        job.task_id,
        problem.train.shape[1],
        problem.train.dtype.name,
        regimes,
        time.perf_counter() - started,
        libraries(),
    )


def _cut(joined: bytes) -> list[bytes]:
    return [joined[i : i + DIGEST_BYTES] for i in range(0, len(joined), DIGEST_BYTES)]


def _regime(problem: probe.Problem, regime: str, job: Job) -> Regime:
    started = time.perf_counter()
    rows = probe.rows_of_regime(problem.train_labels, regime, list(job.seeds), job.few_shot_k)
    fits = probe.run(problem, rows, job.device)
    warned = _warnings(problem, fits, job, regime)
    fits = fits * len(job.seeds) if len(rows) == 1 and rows[0] is None else fits
    predictions = [fit.predictions for fit in fits]
    triples, matrices, classes = _score(problem, predictions)
    seconds = time.perf_counter() - started
    solved, why = _canonical(problem, rows, job)
    return Regime(
        scores=Triple(**metrics.mean(triples)._asdict()),
        per_seed=_columns(triples),
        classes=classes.tolist(),
        confusion=[matrix.tolist() for matrix in matrices],
        predictions_sha256=metrics.predictions_sha256(predictions),
        rows=[fit.rows for fit in fits],
        iterations=[fit.iterations for fit in fits],
        warnings=warned,
        seconds=round(seconds, 6),
        canonical=solved,
        no_canonical=why,
    )


def _score(
    problem: probe.Problem, predictions: list[Labels]
) -> tuple[list[metrics.Scores], list[metrics.Confusion], Labels]:
    classes = np.unique(np.concatenate([problem.train_labels, problem.test_labels]))
    matrices = [metrics.confusion_matrix(problem.test_labels, p, classes) for p in predictions]
    return [metrics.scores(matrix) for matrix in matrices], matrices, classes


def _columns(triples: list[metrics.Scores]) -> PerSeed:
    mcc, acc, f1 = (list(column) for column in zip(*triples, strict=True))
    return PerSeed(MCC=mcc, Acc=acc, F1=f1)


def _canonical(
    problem: probe.Problem, rows: list[npt.NDArray[np.int64] | None], job: Job
) -> tuple[Canonical | None, str | None]:
    """Return the canonical score of one regime, or None and why there is none."""
    if not job.canonical:
        return None, NO_CANONICAL
    count, dim = problem.train.shape
    if rows[0] is None and not canonical.affordable(count, dim):
        limit = canonical.FLOAT64_BYTES_MAX >> 20
        return None, f"{count} x {dim} features in float64 take more than {limit} MiB"
    started = time.perf_counter()
    solved = [canonical.solve(*_subset(problem, chosen)) for chosen in rows]
    predictions = [one.predict(problem.test) for one in solved]
    predictions = predictions * (len(job.seeds) if rows[0] is None else 1)
    triples, matrices, _ = _score(problem, predictions)
    return Canonical(
        scores=Triple(**metrics.mean(triples)._asdict()),
        per_seed=_columns(triples),
        confusion=[matrix.tolist() for matrix in matrices],
        predictions_sha256=metrics.predictions_sha256(predictions),
        solvers=sorted({one.solver for one in solved}),
        seconds=round(time.perf_counter() - started, 6),
    ), None


def _subset(problem: probe.Problem, chosen: npt.NDArray[np.int64] | None) -> tuple[Rows, Labels]:
    if chosen is None:
        return problem.train, problem.train_labels
    return problem.train[chosen], problem.train_labels[chosen]


def _warnings(problem: probe.Problem, fits: list[probe.Fit], job: Job, regime: str) -> list[Warned]:
    """Return what a reader of the score should know, each kind once, with its seeds."""
    seeds = list(job.seeds)
    found = []

    def warn(kind: Kind, message: str, hit: list[bool]) -> None:
        if any(hit):
            which = seeds if len(hit) == 1 else [s for s, h in zip(seeds, hit, strict=True) if h]
            found.append(Warned(kind=kind, message=message, seeds=which))

    warn(
        "not-converged",
        f"the solver stopped before its tolerance, at {probe.MAX_ITER} steps or for want of digits",
        [not fit.converged for fit in fits],
    )
    warn(
        "constant-prediction",
        "every test sequence got the same label, so MCC is 0: the features may be too small",
        [fit.constant for fit in fits],
    )
    unseen = sorted(set(problem.test_labels.tolist()) - set(problem.train_labels.tolist()))
    warn("untrained-class", f"test labels that no training row has: {unseen}", [bool(unseen)])
    if k := job.few_shot_k.get(regime):
        counts = np.unique(problem.train_labels, return_counts=True)[1]
        short = int((counts < k).sum())
        warn("small-class", f"{short} classes have fewer than {k} training rows", [bool(short)])
    for note in sorted({note for fit in fits for note in fit.notes}):
        warn("scikit-learn", note, [note in fit.notes for fit in fits])
    return found
