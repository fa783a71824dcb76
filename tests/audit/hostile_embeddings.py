"""Matrices that an extractor may return to keep the scoring busy, to break it, or to end it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

Write = Callable[[Path, int], None]
WIDTH = 64


def _random(rows: int, width: int = WIDTH) -> np.ndarray:
    return np.random.default_rng(rows).normal(size=(rows, width)).astype(np.float32)


def _values(make: Callable[[int], np.ndarray]) -> Write:
    return lambda path, rows: np.save(path, make(rows), allow_pickle=False)


def _signs(rows: int, width: int = WIDTH) -> np.ndarray:
    return np.where((np.arange(rows)[:, None] + np.arange(width)) % 2, 1.0, -1.0)


def _with_column(rows: int, value: float) -> np.ndarray:
    rows_written = _random(rows)
    rows_written[:, 0] = value
    return rows_written


def _cut(path: Path, rows: int) -> None:
    np.save(path, _random(rows))
    path.write_bytes(path.read_bytes()[:-100])


def _pickled(path: Path, rows: int) -> None:
    np.save(path, np.array([[{"row": row}] for row in range(rows)], dtype=object))


SCALES = 10.0 ** np.linspace(-12, 12, WIDTH)
MAX = float(np.finfo(np.float32).max)
REFUSED: dict[str, Write] = {
    "65,536 random columns": _values(lambda n: _random(n, 1 << 16)),
    "20,000 constant columns": _values(lambda n: np.ones((n, 20_000), np.float32)),
    "8,193 columns": _values(lambda n: _random(n, 8193)),
    "no columns": _values(lambda n: np.ones((n, 0), np.float32)),
    "alternating signs of 1e30": _values(lambda n: (1e30 * _signs(n)).astype(np.float32)),
    "the largest float32": _values(lambda n: np.full((n, WIDTH), MAX, np.float32)),
    "the largest float64": _values(lambda n: np.full((n, WIDTH), np.finfo(np.float64).max)),
    "infinity": _values(lambda n: _with_column(n, np.inf)),
    "NaN": _values(lambda n: _with_column(n, np.nan)),
    "integers": _values(lambda n: np.ones((n, WIDTH), int)),
    "another byte order": _values(lambda n: _random(n).astype(">f4")),
    "complex numbers": _values(lambda n: _random(n).astype(complex)),
    "one dimension": _values(np.ones),
    "three dimensions": _values(lambda n: np.ones((n, 4, 4))),
    "a row too few": _values(lambda n: _random(n - 1)),
    "a file cut off": _cut,
    "Python objects": _pickled,
}
"""Refused before anything is fitted."""
FITTED: dict[str, Write] = {
    "zeros": _values(lambda n: np.zeros((n, WIDTH), np.float32)),
    "equal rows": _values(lambda n: np.tile(_random(1), (n, 1))),
    "a column of 20,000": _values(lambda n: _with_column(n, 20_000)),
    "every column of 20,000": _values(lambda n: _with_column(n, 0) * 1e-3 + np.float32(20_000)),
    "a column of 1e17": _values(lambda n: _with_column(n, 1e17)),
    "alternating signs of 1e17": _values(lambda n: (1e17 * _signs(n)).astype(np.float32)),
    "one row of 1e17": _values(lambda n: np.eye(n, WIDTH, dtype=np.float32) * 1e17),
    "denormals": _values(lambda n: (_random(n) * np.float32(1e-40)).astype(np.float32)),
    "denormals of float64": _values(lambda n: np.full((n, WIDTH), 5e-324)),
    "duplicates": _values(lambda n: np.repeat(_random(2), -(-n // 2), axis=0)[:n]),
    "rank one": _values(lambda n: np.outer(_random(n)[:, 0], SCALES)),
    "ill-conditioned": _values(lambda n: _random(n) * SCALES),
    "a Hilbert matrix": _values(
        lambda n: 1e6 / (1.0 + np.arange(n)[:, None] + np.arange(WIDTH)[None])
    ),
    "a tiny difference": _values(lambda n: 1e8 + 1e-6 * _random(n).astype(np.float64)),
    "signs in float16": _values(lambda n: (65_504 * _signs(n)).astype(np.float16)),
    "8,192 random columns": _values(lambda n: _random(n, 8192)),
    "8,192 columns of 1e16": _values(lambda n: _random(n, 8192) * np.float32(1e16)),
}
"""Fitted until the fit or a limit ends it."""
