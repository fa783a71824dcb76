"""Time the probe phase of the stock loop: every regime, five seeds, five full fits.

It runs in a process of its own, so that the environment decides how many threads its BLAS has, as
for a user. Usage: stock.py FEATURES.npz REGIME[,REGIME]. It prints one JSON object.
"""

import hashlib
import json
import sys
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

SEEDS = (13, 17, 42, 123, 997)
SHOTS = {"full": None, "10shot": 10, "1shot": 1}


def main(path: str, regimes: str) -> None:
    data = np.load(path)
    x, y, x_test, y_test = (data[name] for name in ("x", "y", "x_test", "y_test"))
    warnings.simplefilter("ignore")
    digests, predictions = {}, {}
    start, cpu = time.perf_counter(), time.process_time()
    for regime in regimes.split(","):
        predictions[regime] = [
            predictions_of_fit(x, y, x_test, y_test, SHOTS[regime], seed) for seed in SEEDS
        ]
    seconds, cpu = time.perf_counter() - start, time.process_time() - cpu
    for regime, predictions_of_seeds in predictions.items():
        joined = np.stack(predictions_of_seeds).astype("<i8").tobytes()
        digests[regime] = hashlib.sha256(joined).hexdigest()
    sys.stdout.write(json.dumps({"seconds": seconds, "cpu": cpu, "digests": digests}) + "\n")


def predictions_of_fit(
    x: np.ndarray,
    y: np.ndarray,
    x_test: np.ndarray,
    y_test: np.ndarray,
    shots: int | None,
    seed: int,
) -> np.ndarray:
    rng = np.random.RandomState(seed)
    rows = np.arange(len(y))
    if shots is not None:
        classes = [np.flatnonzero(y == c) for c in np.unique(y)]
        rows = np.concatenate([rng.choice(c, min(shots, len(c)), replace=False) for c in classes])
        model = LogisticRegression(max_iter=1000, random_state=seed).fit(x[rows], y[rows])
    else:
        model = LogisticRegression(max_iter=1000, random_state=seed).fit(x, y)
    predictions: np.ndarray = model.predict(x_test)
    (
        matthews_corrcoef(y_test, predictions),
        accuracy_score(y_test, predictions),
        f1_score(y_test, predictions, average="macro"),
    )
    return predictions


if __name__ == "__main__":
    main(*sys.argv[1:])
