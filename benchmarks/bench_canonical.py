"""What moves the canonical score, and what moves stock lbfgs: two to twenty classes."""

import time
from collections.abc import Callable

import numpy as np

from reference_harness import canonical, mini, probe
from reference_harness.loading import load

PERTURBATION = 1e-7
"""Relative change of each feature: what batch, kernel or thread count does in float32."""
ROWS, DIM, TEST = 4000, 128, 2000


def language_like(classes: int) -> tuple[np.ndarray, ...]:
    """Return features with a power-law spectrum and an offset, as language models give."""
    rng = np.random.RandomState(classes)
    x = rng.standard_normal((ROWS + TEST, DIM)) / np.sqrt(np.arange(1, DIM + 1))
    scores = x @ rng.standard_normal((DIM, classes))
    labels = (scores / scores.std() * 2 + rng.gumbel(size=scores.shape)).argmax(axis=1)
    x = (10 * (x + rng.standard_normal(DIM))).astype(np.float32)
    return x[:ROWS], labels[:ROWS], x[ROWS:], labels[ROWS:]


def word_counts(task_id: str) -> tuple[np.ndarray, ...]:
    task, embed = mini.load(task_id), load("kmer").extractor.extract_embeddings
    return (
        embed(task.train.sequences),
        task.train.labels,
        embed(task.test.sequences),
        task.test.labels,
    )


def canonical_table(say: Callable[..., None]) -> None:
    say(
        "## Canonical score: rows that change their label",
        "",
        f"Features times 1 + {PERTURBATION} x gaussian; stock is lbfgs as upstream has it.",
        "",
        "| set | classes | test rows | stock, perturbed | canonical, perturbed "
        "| Newton against lbfgs | stock against canonical | seconds: stock, Newton, lbfgs |",
        "|---|---|---|---|---|---|---|---|",
    )
    sets = {
        f"language-like {ROWS} x {DIM}": [language_like(c) for c in (2, 3, 5, 10, 20)],
        "word counts": [word_counts(t) for t in ("mini_phage", "mini_splice", "mini_species")],
    }
    for name, cases in sets.items():
        for case in cases:
            say(row(name, *case))
    say("")


def row(name: str, x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray) -> str:
    rng = np.random.RandomState(9)
    moved, moved_test = (
        (a * (1 + PERTURBATION * rng.standard_normal(a.shape))).astype(np.float32)
        for a in (x, x_test)
    )
    seconds = []

    def run(call: Callable[[], np.ndarray]) -> np.ndarray:
        started = time.perf_counter()
        found = call()
        seconds.append(time.perf_counter() - started)
        return found

    stock = run(lambda: probe.fit(x, y, x_test).predictions)
    newton = run(lambda: canonical.solve(x, y, "newton-cholesky").predict(x_test))
    lbfgs = run(lambda: canonical.solve(x, y, "lbfgs").predict(x_test))
    stock_moved = probe.fit(moved, y, moved_test).predictions
    newton_moved = canonical.solve(moved, y).predict(moved_test)
    flips = [
        int((a != b).sum())
        for a, b in ((stock, stock_moved), (newton, newton_moved), (newton, lbfgs), (stock, newton))
    ]
    times = ", ".join(f"{s:.2f}" for s in seconds)
    cells = " | ".join(map(str, flips))
    return f"| {name} | {len(np.unique(y))} | {len(y_test)} | {cells} | {times} |"
