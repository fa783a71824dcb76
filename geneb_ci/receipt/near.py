"""Test whether two receipts are near, which means that they are probably of one model.

They are compared on embeddings that the digest of the benchmark selects. An audit repeats the draws
of near receipts, so that renaming a model or changing a weight does not give a new draw.
docs/reader/predictions.md describes what is detected.
"""

import hashlib
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from geneb_ci.common.errors import NothingChecked
from geneb_ci.receipt.predictions import CANONICAL, OF_RECORD, Predictions
from geneb_ci.receipt.source import ReceiptFiles
from reference_harness.formats.benchmark import Benchmark
from reference_harness.formats.submission import EmbeddingReceipt

COMPARED_COUNT = 1000
"""Number of embeddings of a receipt that are compared: of all tasks, equally many of each."""
EMBEDDINGS_MIN = 50
"""Smallest number of common embeddings for a comparison."""
CLOSE_DISTANCE = 1e-2
"""Relative distance up to which two embeddings are close: float32 in other batches differs by 2e-7,
bfloat16 by 6e-3, and the embeddings of another model by more than a tenth."""
NEAR_SHARE = 0.5
"""Share of close embeddings above which two receipts are near."""
NEAR_PREDICTION_SHARE = 0.97
"""Share of equal predictions from which two receipts are near. Measured on GENEB-mini
with 4-mers: noise of 1e-2, 3e-2 and 0.1 of an embedding leaves 0.995, 0.990 and 0.972 equal; 5-mers
and 6-mers share 0.87."""
ALIGNMENTS = 2
"""Number of alignments. The second uses only the half of the embeddings that the first brought
closest, so that altered embeddings have no effect on it; more alignments found no more."""

Embeddings = npt.NDArray[np.float64]
"""An (n, d) array of embeddings."""
EmbeddingIndex = tuple[str, int]
"""A task id, and the index of an embedding in the task's file."""


class ReceiptSample(NamedTuple):
    """The compared embeddings of one receipt."""

    positions: tuple[EmbeddingIndex, ...]
    """Task and index of each embedding."""
    rows: Embeddings
    """(n, d) embeddings, multiplied by the scale of their task's file."""
    predictions: Predictions | None = None


class Nearness(NamedTuple):
    """The similarity of two receipts; their order has no effect."""

    rows: int
    """Number of compared embeddings."""
    close: dict[str, float]
    """By kind of alignment, the share of embeddings that are within `CLOSE_DISTANCE` of each other
    after this alignment."""
    same_predictions: float | None
    """Share of equal predictions; None if a receipt has no predictions."""

    @property
    def is_near(self) -> bool:
        """Whether the two receipts are probably of one model."""
        return bool(self.reason)

    @property
    def reason(self) -> str:
        """The reason why the receipts are near; "" if they are not."""
        for alignment, share in self.close.items():
            if share > NEAR_SHARE:
                return (
                    f"{share:.1%} of {self.rows:,} embeddings are within {CLOSE_DISTANCE:g}, "
                    f"{alignment}"
                )
        if self.same_predictions is not None and self.same_predictions >= NEAR_PREDICTION_SHARE:
            return f"{self.same_predictions:.2%} of the predictions are equal"
        return ""


def compared_positions(receipt: EmbeddingReceipt, benchmark: Benchmark) -> Iterator[EmbeddingIndex]:
    """Yield task and index of each embedding of a receipt that is compared.

    They are drawn by SHA-256: draw j of a task is SHA-256(digest of the benchmark || task id
    || 0x00 || j as 8 bytes), as an integer modulo the number of the task's embeddings; repeated
    draws are skipped.
    """
    count = -(-COMPARED_COUNT // len(benchmark.tasks))
    for task in benchmark.task_ids:
        if task not in receipt.tasks:
            continue
        sizes = receipt.tasks[task]
        total = sizes.train + sizes.test
        prefix = bytes.fromhex(benchmark.sha256) + task.encode() + b"\x00"
        drawn: dict[int, None] = {}
        draw = 0
        while len(drawn) < min(count, total):
            digest = hashlib.sha256(prefix + struct.pack(">Q", draw)).digest()
            drawn[int.from_bytes(digest, "big") % total] = None
            draw += 1
        yield from ((task, row) for row in drawn)


def sample_of(
    files: ReceiptFiles,
    receipt: EmbeddingReceipt,
    benchmark: Benchmark,
    predictions: Predictions | None = None,
) -> ReceiptSample:
    """Return the compared embeddings of a receipt. Raises what `sample_at` raises."""
    sample = sample_at(files, receipt, tuple(compared_positions(receipt, benchmark)))
    return sample._replace(predictions=predictions)


def sample_at(
    files: ReceiptFiles, receipt: EmbeddingReceipt, positions: tuple[EmbeddingIndex, ...]
) -> ReceiptSample:
    """Return the embeddings of a receipt at these positions, which are grouped by task.

    Every file is verified. Raises EmbeddingsRefused for a file that is not the receipt's,
    NothingChecked for a missing one.
    """
    rows = np.empty((len(positions), receipt.dim))
    task, matrix = "", np.empty((0, receipt.dim), dtype=np.float16)
    for index, (task_id, row) in enumerate(positions):
        if task_id != task:
            if task:
                files.release(task)
            task, matrix = task_id, _mapped_embeddings(files.file(task_id), receipt.dim)
        rows[index] = np.ldexp(matrix[row].astype(np.float64), receipt.tasks[task_id].scale_log2)
    if task:
        files.release(task)
    return ReceiptSample(positions, rows)


def _mapped_embeddings(path: Path, dim: int) -> npt.NDArray[np.float16]:
    """Return the (n, d) embeddings in a file of a receipt, read from disk when they are used."""
    return np.memmap(path, dtype="<f2", mode="r").reshape(-1, dim)


def nearness_of(a: ReceiptSample, b: ReceiptSample) -> Nearness:
    """Return the similarity of two receipts for one benchmark.

    Raises NothingChecked if they have fewer than `EMBEDDINGS_MIN` embeddings in common.
    """
    index_in_b = {key: index for index, key in enumerate(b.positions)}
    pairs = [(index, index_in_b[key]) for index, key in enumerate(a.positions) if key in index_in_b]
    if len(pairs) < EMBEDDINGS_MIN:
        raise NothingChecked(
            f"both receipts have {len(pairs)} of the embeddings to compare, expected at least "
            f"{EMBEDDINGS_MIN}",
            "compare receipts of runs over the same tasks",
        )
    rows_of_a, rows_of_b = np.array(pairs).T
    x, y = a.rows[rows_of_a], b.rows[rows_of_b]
    close = {"as they are": _share_of_close_embeddings(x, y) if x.shape == y.shape else 0.0}
    transformations = {
        "after moving, scaling and rotating": _unchanged_embeddings,
        "after rescaling each column": _scaled_columns,
        "after rescaling each embedding": _scaled_embeddings,
    }
    close |= {
        name: _share_of_close_after_alignment(transform(x), transform(y))
        for name, transform in transformations.items()
    }
    return Nearness(len(pairs), close, _share_of_equal_predictions(a.predictions, b.predictions))


def _unchanged_embeddings(rows: Embeddings) -> Embeddings:
    """Return the same embeddings: the alignment without rescaling."""
    return rows


def _scaled_columns(rows: Embeddings) -> Embeddings:
    """Return embeddings whose columns have median 0 and the same spread; constant columns are 0."""
    centred = rows - np.median(rows, axis=0)
    spread = np.abs(centred).mean(axis=0)
    scaled: Embeddings = np.divide(centred, spread, out=np.zeros_like(centred), where=spread > 0)
    return scaled


def _scaled_embeddings(rows: Embeddings) -> Embeddings:
    """Return embeddings scaled to length 1; zeros stay zeros."""
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Embeddings = np.divide(rows, norms, out=np.zeros_like(rows), where=norms > 0)
    return scaled


def _share_of_close_embeddings(x: Embeddings, y: Embeddings) -> float:
    """Return the share of pairs (x[i], y[i]) closer than `CLOSE_DISTANCE`, relative to length."""
    return float((_distances(x, y) < CLOSE_DISTANCE).mean())


def _distances(x: Embeddings, y: Embeddings) -> npt.NDArray[np.float64]:
    """Return the distance of each pair of embeddings divided by the larger length; 0 for zeros."""
    lengths = np.maximum(np.linalg.norm(x, axis=1), np.linalg.norm(y, axis=1))
    distances = np.linalg.norm(x - y, axis=1)
    relative_distances: npt.NDArray[np.float64] = np.divide(
        distances, lengths, out=np.zeros_like(distances), where=lengths > 0
    )
    return relative_distances


def _share_of_close_after_alignment(x: Embeddings, y: Embeddings) -> float:
    """Return the share of close embeddings after moving, scaling and rotating one set onto another.

    A rotation is any orthogonal map, also a permutation or a change of sign of columns. It keeps
    the distances within a set, so that different models cannot be made close.
    """
    closest = np.arange(len(x))
    share = 0.0
    for _ in range(ALIGNMENTS):
        first, second = _centred_and_scaled(x, closest), _centred_and_scaled(y, closest)
        if first is None or second is None:
            return share  # all embeddings are equal
        first, second = _in_equal_widths(first, second)
        left, _, right = np.linalg.svd(second[closest].T @ first[closest])
        distances = _distances(first, second @ left @ right)
        share = max(share, float((distances < CLOSE_DISTANCE).mean()))
        closest = np.argsort(distances, kind="stable")[: (len(x) + 1) // 2]
    return share


def _centred_and_scaled(rows: Embeddings, subset: npt.NDArray[np.int64]) -> Embeddings | None:
    """Return embeddings minus the mean of a subset, divided by the subset's median norm then.

    Return None if the median is 0.
    """
    centred = rows - rows[subset].mean(axis=0)
    length = float(np.median(np.linalg.norm(centred[subset], axis=1)))
    if length <= 0:
        return None
    scaled: Embeddings = centred / length
    return scaled


def _in_equal_widths(x: Embeddings, y: Embeddings) -> tuple[Embeddings, Embeddings]:
    """Return both sets in coordinates of their span, padded with zeros to equal width."""
    narrow_rows = [
        _span_coordinates(rows) if rows.shape[1] > len(rows) else rows for rows in (x, y)
    ]
    width = max(rows.shape[1] for rows in narrow_rows)
    first, second = (np.pad(part, ((0, 0), (0, width - part.shape[1]))) for part in narrow_rows)
    return first, second


def _span_coordinates(rows: Embeddings) -> Embeddings:
    """Return embeddings in coordinates of their span, which keep all distances."""
    return np.asarray(np.linalg.qr(rows.T, mode="r")).T


def _share_of_equal_predictions(a: Predictions | None, b: Predictions | None) -> float | None:
    """Return the share of equal predictions in common tasks and regimes; None without any."""
    if a is None or b is None:
        return None
    equal = total = 0
    for task in a.tasks.keys() & b.tasks.keys():
        first, second = a.tasks[task], b.tasks[task]
        if first.labels != second.labels or not np.array_equal(first.truth, second.truth):
            continue
        common_fits = first.fits.keys() & second.fits.keys()
        set_name = CANONICAL if CANONICAL in common_fits else OF_RECORD  # earlier runs have both
        first_fits, second_fits = first.fits.get(set_name, {}), second.fits.get(set_name, {})
        for regime in first_fits.keys() & second_fits.keys():
            equal += int((first_fits[regime] == second_fits[regime]).sum())
            total += first_fits[regime].size
    return equal / total if total else None
