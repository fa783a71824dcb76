"""What a dishonest contributor does to embeddings: replace them, add noise that knows the
labels."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from geneb_ci.receipt.direction import Probe
from geneb_ci.receipt.embeddings import TAU
from geneb_ci.receipt.influence import influence_of, strongest_embeddings
from geneb_ci.receipt.rounding import receipt_values
from reference_harness.probe.optimum import solve
from reference_harness.receipt.rounding import rounded, widened

Rows = npt.NDArray[np.float32]
Labels = npt.NDArray[np.int64]
Attack = Callable[[Rows, Labels, int], Rows]
"""From honest embeddings, labels of all embeddings and the number of training embeddings to those
of the receipt."""


def signs(labels: Labels) -> npt.NDArray[np.float64]:
    """Return +1 for the upper half of the labels, -1 for the lower."""
    return np.where(labels > np.median(np.unique(labels)), 1.0, -1.0)


def lengths(rows: Rows) -> npt.NDArray[np.float64]:
    """Return the length of each embedding."""
    norms: npt.NDArray[np.float64] = np.linalg.norm(rows.astype(np.float64), axis=1)
    return norms


def column(rows: Rows, labels: Labels, train: int, eps: float) -> Rows:
    """Write the label along the direction of least variance within classes, in every embedding."""
    wide = rows[:train].astype(np.float64)
    centred = wide.copy()
    for label in np.unique(labels[:train]):
        own = labels[:train] == label
        centred[own] -= wide[own].mean(axis=0)
    direction = np.linalg.eigh(centred.T @ centred)[1][:, 0]
    moved: Rows = (rows + (eps * lengths(rows) * signs(labels))[:, None] * direction).astype("f4")
    return moved


def push(rows: Rows, labels: Labels, train: int, eps: float) -> Rows:
    """Move the test embeddings along the weights of the honest probe, towards their labels."""
    weights = _weights(rows, labels, train)
    moved = rows.astype(np.float64)
    size = (eps * lengths(rows[train:]) * signs(labels[train:]))[:, None]
    moved[train:] += size * weights / np.linalg.norm(weights)
    return moved.astype(np.float32)


def border(rows: Rows, labels: Labels, train: int, tau: float = TAU) -> Rows:
    """Move what lies within tau of a border of rounding across it, towards the label.

    The most that the tolerance of a coordinate allows; embeddings that are not scaled only.
    """
    weights = _weights(rows, labels, train)
    wide, half = rows.astype(np.float64), rounded([rows]).values
    size = np.sqrt(np.mean(wide * wide, axis=1, keepdims=True))
    towards = np.sign(weights)[None, :] * signs(labels)[:, None]
    other = np.where(
        towards > 0,
        np.nextafter(half, np.float16(np.inf), dtype=np.float16),
        np.nextafter(half, np.float16(-np.inf), dtype=np.float16),
    )
    middle = (half.astype(np.float64) + other.astype(np.float64)) / 2
    near = (np.abs(middle - wide) <= 0.99 * tau * size) & (towards != 0)
    moved_values = np.where(near, other, half)
    return widened(moved_values.astype(np.float16), 0)


def altered(rows: Rows, labels: Labels, places: Any, train: int) -> Rows:
    """Replace embeddings, by place, by what the honest probe takes for their labels."""
    weights = _weights(rows, labels, train)
    altered_rows = rows.copy()
    length = lengths(rows).max()
    direction = weights / np.linalg.norm(weights)
    for index in places:
        altered_rows[index] = (signs(labels)[index] * length * direction).astype(np.float32)
    return altered_rows


def _weights(rows: Rows, labels: Labels, train: int) -> npt.NDArray[np.float64]:
    solved = solve(rows[:train], labels[:train])
    direction: npt.NDArray[np.float64] = solved.weights[:, -1] - solved.weights[:, 0]
    return direction


STEPS, RATE, MEMORY = 60, 0.3, 0.9
"""Of the descent that makes poisoned embeddings: its steps, in standard deviations, and
momentum."""


SMALLER = 0.8
"""Distance from the middle, each time, of an embedding that is still among the strongest."""


def below_strongest(rows: Rows, labels: Labels, train: int, places: list[int]) -> Rows:
    """Bring embeddings nearer to the middle until none of them is among the strongest."""
    moved, middle = rows.copy(), np.median(rows[:train], axis=0)
    while True:
        half = receipt_values(moved, 0)
        solved = solve(widened(half, 0)[:train], labels[:train])
        probe = Probe(solved.weights, solved.intercepts, solved.classes)
        influence = influence_of(half, 0, train, labels, probe)
        strongest = strongest_embeddings(half[:train], 0, labels[:train], influence, probe)
        over = sorted({*places} & {*strongest.rows})
        if not over:
            return moved
        moved[over] = middle + SMALLER * (moved[over] - middle)


def poisoned(rows: Rows, labels: Labels, train: int, places: list[int]) -> Rows:
    """Alter few training embeddings of two classes so that the loss of the test embeddings falls
    most.

    Their labels stay. Each step follows the derivative of the loss, through the optimum of the
    probe, with respect to these embeddings.
    """
    wide = rows.astype(np.float64)
    own, truth = wide[:train].copy(), labels == labels.max()
    size, speed = own.std(), np.zeros((len(places), wide.shape[1]))
    for _ in range(STEPS):
        solved = solve(own.astype(np.float32), labels[:train])
        weights = solved.weights[:, 1] - solved.weights[:, 0]
        intercept = solved.intercepts[1] - solved.intercepts[0]
        with_one = np.hstack([own, np.ones((train, 1))])
        share = 1 / (1 + np.exp(-(own @ weights + intercept)))
        curvature = share * (1 - share)
        hessian = (with_one.T * curvature) @ with_one
        hessian[np.diag_indices(len(weights))] += 1
        hessian[-1, -1] += 1e-9
        tested = np.hstack([wide[train:], np.ones((len(wide) - train, 1))])
        wrong = 1 / (1 + np.exp(-(wide[train:] @ weights + intercept))) - truth[train:]
        answer = np.linalg.solve(hessian, tested.T @ wrong / len(wrong))
        residual = (share - truth[:train])[places, None]
        pull = (curvature[places] * (with_one[places] @ answer))[:, None]
        slope = -(residual * answer[None, :-1] + pull * weights[None, :])
        speed = MEMORY * speed + (1 - MEMORY) * slope / np.abs(slope).mean(axis=1, keepdims=True)
        own[places] -= RATE * size * speed
    moved = rows.copy()
    moved[places] = own[places]
    return moved
