"""Print how alike the errors of few-shot fits are, with k-mers on the six real tasks.

    python -m benchmarks.bench_overlap

The correlation r is read off the variance of MCC under resampled test sequences: that of a mean of
five fits is (1 + 4 r) / 5 of one fit's. `OVERLAP` in geneb_ci/board/variance.py rests on it.
"""

import csv
import gzip
import sys
import warnings
from pathlib import Path

import numpy as np
import numpy.typing as npt

from benchmarks.simulate import mcc_of
from reference_harness.extractors.kmer import KmerExtractor
from reference_harness.probe.logistic import few_shot_indices, fit
from tests.paths import REAL_TASKS

SEEDS = (13, 17, 42, 123, 997)
SHOTS = {"10shot": 10, "1shot": 1}
WORD_LENGTHS = (3, 5)
RESAMPLES = 600

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def split(path: Path, name: str) -> tuple[list[str], Ints]:
    """Return sequences and labels of one split."""
    with gzip.open(path, "rt", encoding="utf-8", newline="") as stream:
        rows = [row for row in csv.DictReader(stream) if row["split"] == name]
    return [row["text"] for row in rows], np.array([int(row["label"]) for row in rows])


def fit_correlation(
    predicted_labels: Ints, truth: Ints, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Return r, the error of one fit's MCC from the test set, and the spread between fits.

    `said` are predicted labels, (fits, sequences).
    """
    right_counts = []
    for label in (0, 1):
        indices = np.flatnonzero(truth == label)
        equal_weights = np.full(len(indices), 1 / len(indices))
        resample_counts = rng.multinomial(len(indices), equal_weights, RESAMPLES)
        right_counts.append(resample_counts @ (predicted_labels[:, indices] == label).T)
    sizes = [np.array(np.sum(truth == label)) for label in (0, 1)]
    mcc = mcc_of(sizes[0], sizes[1], right_counts[0], right_counts[1])
    share = mcc.mean(axis=1).var() / mcc.var(axis=0).mean()
    spread = float(mcc.mean(axis=0).std(ddof=1))
    return (5 * share - 1) / 4, float(np.sqrt(mcc.var(axis=0).mean())), spread


def main() -> int:
    """Measure and print; return 1 without task files."""
    paths = sorted(REAL_TASKS.glob("*.csv.gz"))
    if not paths:
        print(f"no task files in {REAL_TASKS}", file=sys.stderr)
        return 1
    warnings.simplefilter("ignore")
    rng = np.random.Generator(np.random.PCG64(1))
    cells_by_regime: dict[str, list[tuple[float, float, float]]] = {regime: [] for regime in SHOTS}
    for path in paths:
        (train, labels), (test, truth) = split(path, "train"), split(path, "test")
        for k in WORD_LENGTHS:
            extractor = KmerExtractor(k=k)
            frequencies = [extractor.extract_embeddings(part) for part in (train, test)]
            mean, scale = frequencies[0].mean(axis=0), frequencies[0].std(axis=0) + 1e-9
            for train_features, test_features in (
                frequencies,
                [(part - mean) / scale for part in frequencies],
            ):
                for regime, shots in SHOTS.items():
                    rows = [few_shot_indices(labels, shots, seed) for seed in SEEDS]
                    predicted_labels = np.array(
                        [
                            fit(
                                train_features[correlations], labels[correlations], test_features
                            ).predictions
                            for correlations in rows
                        ]
                    )
                    cells_by_regime[regime].append(fit_correlation(predicted_labels, truth, rng))
    print("| regime | r: mean | greatest | error from the test set | spread between seeds |")
    print("|---|---:|---:|---:|---:|")
    for regime, cells in cells_by_regime.items():
        correlations, error, spread = np.array(cells).T
        print(
            f"| {regime} | {correlations.mean():.2f} | {correlations.max():.2f} | "
            f"{error.min():.3f} to {error.max():.3f} "
            f"| {spread.min():.3f} to {spread.max():.3f}, "
            f"rms {np.sqrt(np.mean(spread * spread)):.3f} |"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
