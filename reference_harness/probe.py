"""The score of record: scikit-learn's default logistic regression on the unscaled features.

scikit-learn takes a second or two to import, and the process that starts the workers fits nothing:
this module, `optimum` and `halts` import it where something is fitted.
"""

import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from .errors import ProbeError
from .matrix import AnyMatrix
from .tasks import Labels

MAX_ITER = 1000
"""Upstream's; everything else is scikit-learn's default."""
DEVICE_NUMBERS = 1 << 22
"""Numbers (sequences times columns of the training features) from which a fit is done on a device
other than the CPU. In a smaller one a step takes a CPU under a millisecond, about what a GPU takes
to start its kernels: few-shot fits stay on the CPU. An estimate, not measured on a GPU."""

Features = npt.NDArray[np.floating[Any]]
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """The result of one fit on the test split."""

    predictions: Labels
    iterations: int
    rows: int
    """Training sequences it was fitted on."""
    converged: bool = True
    """False when the solver stopped at its limit of iterations, or could not go on."""
    notes: tuple[str, ...] = ()
    """Warnings of scikit-learn, other than that it did not converge."""
    weights: Weights = field(default_factory=lambda: np.empty((0, 0)))
    """(d, c), a column a class; of two classes the first has zeros."""
    intercepts: Weights = field(default_factory=lambda: np.empty(0))
    """(c,)."""

    @property
    def constant(self) -> bool:
        """Whether every test sequence got the same label."""
        return len(np.unique(self.predictions)) == 1


@dataclass(frozen=True)
class Device:
    """Where the probe runs: "cpu" with NumPy, or any torch device.

    There the score of record goes through scikit-learn's array API, which gives another number than
    NumPy's BLAS, so a run record marks it.
    """

    name: str = "cpu"
    torch: bool = field(default=False)
    least: int = DEVICE_NUMBERS
    """Numbers of the training features from which a fit is done there; smaller ones use NumPy."""

    def __str__(self) -> str:
        """Return what must be equal in a run that is resumed."""
        return f"{self.name}, torch from {self.least} numbers" if self.torch else self.name

    @property
    def accelerator(self) -> bool:
        """Whether it is not the CPU: each process that uses it takes memory there for itself."""
        return self.torch and self.name.partition(":")[0] != "cpu"

    def takes(self, features: AnyMatrix) -> bool:
        """Whether this device, and not NumPy, fits (n, d) training features."""
        return self.torch and features.size >= self.least

    def put(self, array: npt.NDArray[Any]) -> Any:  # NumPy or torch
        """Return the array on the device; a view of the same memory where that can be."""
        if not self.torch:
            return array
        import torch  # a second to import, and not needed on the CPU

        return torch.from_numpy(np.ascontiguousarray(array)).to(self.name)

    def context(self) -> AbstractContextManager[object]:
        """Return the scikit-learn configuration under which to fit and to predict."""
        import sklearn  # see the module's docstring

        # The embeddings were found finite when they were embedded: no need to read them all again.
        # The parameters are constants; validating them took a third of the time of a few-shot fit.
        options = {"array_api_dispatch": True} if self.torch else {}
        context: AbstractContextManager[object] = sklearn.config_context(
            assume_finite=True, skip_parameter_validation=True, **options
        )
        return context


CPU = Device()


def few_shot_indices(labels: Labels, k: int, seed: int) -> npt.NDArray[np.int64]:
    """Draw at most k training sequences of each class, without replacement.

    One generator a seed runs through the classes in sorted order; the result is the draws one
    after the other, which is the order the probe sees.
    """
    rng = np.random.RandomState(seed)
    drawn = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        drawn.append(rng.choice(rows, min(k, len(rows)), replace=False))
    return np.concatenate(drawn)


def fit(
    train: Any,  # NumPy or torch, as the device has it
    labels: Labels,
    test: Any,
    device: Device = CPU,
    seed: int | None = None,
) -> Fit:
    """Fit the probe on (n, d) features and (n,) labels and predict the (m, d) test features.

    `seed` is handed on as upstream does; the solver ignores it.

    Raises ProbeError when scikit-learn refuses the data.
    """
    from sklearn.exceptions import ConvergenceWarning  # see the module's docstring
    from sklearn.linear_model import LogisticRegression

    probe = LogisticRegression(max_iter=MAX_ITER, random_state=seed)
    with warnings.catch_warnings(record=True) as caught, device.context():
        warnings.simplefilter("always")
        try:
            probe.fit(train, device.put(labels))
            predicted = probe.predict(test)
        except (ValueError, FloatingPointError, MemoryError) as error:
            msg = f"the probe cannot be fitted: {type(error).__name__}: {error}"
            raise ProbeError(msg) from error
    stopped = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    notes = {f"{w.category.__name__}: {w.message}" for w in caught if w not in stopped}
    weights, intercepts = _columns(probe.coef_, probe.intercept_)
    return Fit(
        predictions=_labels(predicted),
        iterations=int(_labels(probe.n_iter_).max()),
        rows=len(labels),
        converged=not stopped,
        notes=tuple(sorted(notes)),
        weights=weights,
        intercepts=intercepts,
    )


def _columns(coef: Any, intercept: Any) -> tuple[Weights, Weights]:  # NumPy or torch
    """Return (d, c) weights and (c,) intercepts of what scikit-learn fitted."""
    weights, intercepts = (_on_host(each).astype(np.float64) for each in (coef, intercept))
    if len(weights) == 1:  # two classes: the values of the second, beside which the first has 0
        weights = np.concatenate([np.zeros_like(weights), weights])
        intercepts = np.concatenate([np.zeros_like(intercepts), intercepts])
    return np.ascontiguousarray(weights.T), intercepts


def _on_host(values: Any) -> npt.NDArray[Any]:  # NumPy or torch
    return np.asarray(values.detach().cpu().numpy() if hasattr(values, "detach") else values)


def _labels(values: Any) -> Labels:  # NumPy or torch
    return _on_host(values).astype(np.int64)


@dataclass(frozen=True)
class Problem:
    """The features and labels of one task, ready for any regime.

    `train` is (n, d) and `test` (m, d), both C-ordered and of one floating type; both are held by
    reference and never copied, for a large task fills most of the memory.
    """

    train: Features
    train_labels: Labels
    test: Features
    test_labels: Labels

    def __post_init__(self) -> None:
        """Refuse shapes that scikit-learn would refuse later, in words about the task."""
        for name, x, y in (
            ("train", self.train, self.train_labels),
            ("test", self.test, self.test_labels),
        ):
            if x.ndim != 2 or len(x) != len(y) or not len(x):  # noqa: PLR2004 - sequences, columns
                msg = f"{name}: features of shape {x.shape} for {len(y)} labels"
                raise ProbeError(msg)
        if len(np.unique(self.train_labels)) == 1:
            msg = f"train: every label is {self.train_labels[0]}, nothing to separate"
            raise ProbeError(msg)

    def training(self, chosen: npt.NDArray[np.int64] | None) -> tuple[Features, Labels]:
        """Return features and labels of the training sequences that are chosen: all for None."""
        if chosen is None:
            return self.train, self.train_labels
        return self.train[chosen], self.train_labels[chosen]


def fit_indices(
    labels: Labels, regime: str, seeds: list[int], few_shot_k: Mapping[str, int]
) -> list[npt.NDArray[np.int64] | None]:
    """Return the training sequences of each fit: one entry a seed, or None once for all sequences.

    lbfgs starts from zero and draws nothing, so five fits of the full regime agree bit for bit
    and one stands for all.
    """
    if regime not in few_shot_k:
        return [None]
    return [few_shot_indices(labels, few_shot_k[regime], seed) for seed in seeds]


def run(
    problem: Problem,
    rows: list[npt.NDArray[np.int64] | None],
    device: Device = CPU,
) -> list[Fit]:
    """Fit once for each entry of `rows` and predict the whole test split each time."""
    fits = []
    for chosen in rows:
        train, labels = problem.training(chosen)
        where = device if device.takes(train) else CPU
        fits.append(fit(where.put(train), labels, where.put(problem.test), where))
    return fits
