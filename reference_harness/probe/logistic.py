"""The probe of record: scikit-learn's default logistic regression on the unscaled features.

scikit-learn takes a second or two to import, and the process that starts the workers fits nothing:
this module, `optimum` and `stopping_points` import it only when something is fitted.
"""

import warnings
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from reference_harness.data.task_data import Labels
from reference_harness.embedding.matrix import AnyMatrix
from reference_harness.errors import ProbeError

ITERATIONS_MAX = 1000
"""Upstream's limit of iterations; all other settings are scikit-learn's defaults."""
DEVICE_SIZE_MIN = 1 << 22
"""Size of the training features (sequences times columns) from which a fit runs on another device
than the CPU. A step of a smaller fit takes a CPU less than a millisecond, about as long as a GPU
takes to start its kernels. The number is an estimate, not measured on a GPU."""

Features = npt.NDArray[np.floating[Any]]
"""(n, d) embeddings of n sequences."""
Weights = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """The result of one fit, with its predictions for the test split."""

    predictions: Labels
    iterations: int
    rows: int
    """Number of training sequences."""
    converged: bool = True
    """False if the solver stopped at its limit of iterations, or could not continue."""
    notes: tuple[str, ...] = ()
    """Warnings of scikit-learn, except those about convergence."""
    weights: Weights = field(default_factory=lambda: np.empty((0, 0)))
    """(d, c), one column per class; of two classes the first is zero."""
    intercepts: Weights = field(default_factory=lambda: np.empty(0))
    """(c,), one per class; of two classes the first is zero."""

    @property
    def is_constant(self) -> bool:
        """Whether every test sequence has the same predicted label."""
        return len(np.unique(self.predictions)) == 1


@dataclass(frozen=True)
class Device:
    """The device of the probe: "cpu" with NumPy, or any torch device.

    With torch, the score is computed by scikit-learn's array API, which gives other numbers than
    NumPy's BLAS, so a run record contains the device.
    """

    name: str = "cpu"
    torch: bool = field(default=False)
    size_min: int = DEVICE_SIZE_MIN
    """Size of the training features from which a fit uses torch; smaller ones use NumPy."""

    def __str__(self) -> str:
        """Return the device as text, which must be equal if a run is resumed."""
        return f"{self.name}, torch from {self.size_min} numbers" if self.torch else self.name

    @property
    def is_accelerator(self) -> bool:
        """Whether the device is not the CPU, so that each process needs memory on it."""
        return self.torch and self.name.partition(":")[0] != "cpu"

    def fits_on(self, features: AnyMatrix) -> bool:
        """Whether this device, rather than NumPy, fits (n, d) training features."""
        return self.torch and features.size >= self.size_min

    def put(self, array: npt.NDArray[Any]) -> Any:  # NumPy or torch
        """Return the array on the device; if possible, a view of the same memory."""
        if not self.torch:
            return array
        import torch  # a second to import, and not needed on the CPU

        return torch.from_numpy(np.ascontiguousarray(array)).to(self.name)

    def context(self) -> AbstractContextManager[object]:
        """Return the scikit-learn configuration for fitting and predicting."""
        import sklearn  # see the module's docstring

        # The embeddings were checked to be finite when they were computed. The parameters are
        # constants; validating them took a third of the time of a few-shot fit.
        options = {"array_api_dispatch": True} if self.torch else {}
        context: AbstractContextManager[object] = sklearn.config_context(
            assume_finite=True, skip_parameter_validation=True, **options
        )
        return context


CPU = Device()
"""The probe on the CPU with NumPy, as the scorer of record requires."""


def few_shot_indices(labels: Labels, k: int, seed: int) -> npt.NDArray[np.int64]:
    """Return the indices of at most k training sequences per class, drawn without replacement.

    One generator per seed draws for the classes in sorted order. The probe gets the sequences in
    the order of the draws.
    """
    return few_shot_indices_by_seed(labels, k, [seed])[0]


def few_shot_indices_by_seed(
    labels: Labels, k: int, seeds: Iterable[int]
) -> list[npt.NDArray[np.int64]]:
    """Return the result of `few_shot_indices` for each seed.

    One generator is seeded again and again: to make one takes a hundred times as long.
    """
    rng = np.random.RandomState()
    rows_by_class = [np.flatnonzero(labels == label) for label in np.unique(labels)]
    indices_by_seed = []
    for seed in seeds:
        rng.seed(seed)
        draws = [rng.choice(rows, min(k, len(rows)), replace=False) for rows in rows_by_class]
        indices_by_seed.append(np.concatenate(draws))
    return indices_by_seed


def fit(
    train: Any,  # NumPy or torch, as the device has it
    labels: Labels,
    test: Any,
    device: Device = CPU,
    seed: int | None = None,
) -> Fit:
    """Fit the probe on (n, d) features and (n,) labels and predict the (m, d) test features.

    `seed` is passed on as upstream does, although the solver ignores it. Raise ProbeError if
    scikit-learn refuses the data.
    """
    from sklearn.exceptions import ConvergenceWarning  # see the module's docstring
    from sklearn.linear_model import LogisticRegression

    probe = LogisticRegression(max_iter=ITERATIONS_MAX, random_state=seed)
    with warnings.catch_warnings(record=True) as caught_warnings, device.context():
        warnings.simplefilter("always")
        try:
            probe.fit(train, device.put(labels))
            predicted = probe.predict(test)
        except (ValueError, FloatingPointError, MemoryError) as error:
            msg = f"the probe cannot be fitted: {type(error).__name__}: {error}"
            raise ProbeError(msg) from error
    convergence_warnings = [
        w for w in caught_warnings if issubclass(w.category, ConvergenceWarning)
    ]
    notes = {
        f"{w.category.__name__}: {w.message}"
        for w in caught_warnings
        if w not in convergence_warnings
    }
    weights, intercepts = _weights_by_class(probe.coef_, probe.intercept_)
    return Fit(
        predictions=_labels(predicted),
        iterations=int(_labels(probe.n_iter_).max()),
        rows=len(labels),
        converged=not convergence_warnings,
        notes=tuple(sorted(notes)),
        weights=weights,
        intercepts=intercepts,
    )


def _weights_by_class(coef: Any, intercept: Any) -> tuple[Weights, Weights]:  # NumPy or torch
    """Return (d, c) weights and (c,) intercepts from scikit-learn's coefficients."""
    weights, intercepts = (
        _as_numpy(coefficients).astype(np.float64) for coefficients in (coef, intercept)
    )
    if len(weights) == 1:  # two classes: only the second has values
        weights = np.concatenate([np.zeros_like(weights), weights])
        intercepts = np.concatenate([np.zeros_like(intercepts), intercepts])
    return np.ascontiguousarray(weights.T), intercepts


def _as_numpy(array: Any) -> npt.NDArray[Any]:  # NumPy or torch
    """Return an array of any library as a NumPy array."""
    return np.asarray(array.detach().cpu().numpy() if hasattr(array, "detach") else array)


def _labels(array: Any) -> Labels:  # NumPy or torch
    """Return predicted labels as int64."""
    return _as_numpy(array).astype(np.int64)


@dataclass(frozen=True)
class Problem:
    """The features and labels of one task, ready for any regime.

    `train` is (n, d) and `test` (m, d), both C-ordered and of one floating-point type. They are
    held by reference and never copied, as a large task fills most of the memory.
    """

    train: Features
    train_labels: Labels
    test: Features
    test_labels: Labels

    def __post_init__(self) -> None:
        """Raise ProbeError for shapes or labels that scikit-learn would refuse later."""
        for split, features, labels in (
            ("train", self.train, self.train_labels),
            ("test", self.test, self.test_labels),
        ):
            if features.ndim != 2 or len(features) != len(labels) or not len(features):  # noqa: PLR2004 - sequences, columns
                msg = (
                    f"{split}: features have shape {features.shape}, expected one row for each of "
                    f"{len(labels)} labels"
                )
                raise ProbeError(msg)
        if len(np.unique(self.train_labels)) == 1:
            msg = f"train: every label is {self.train_labels[0]}, expected at least two classes"
            raise ProbeError(msg)

    def training(self, indices: npt.NDArray[np.int64] | None) -> tuple[Features, Labels]:
        """Return features and labels of training sequences by their indices, of all if None."""
        if indices is None:
            return self.train, self.train_labels
        return self.train[indices], self.train_labels[indices]


def fit_indices(
    labels: Labels, regime: str, seeds: list[int], few_shot_k: Mapping[str, int]
) -> list[npt.NDArray[np.int64] | None]:
    """Return the indices of training sequences per fit: one array per seed, or one None for all.

    lbfgs starts from zero and uses no random numbers, so fits of the full regime with different
    seeds are equal bit for bit and one is enough.
    """
    if regime not in few_shot_k:
        return [None]
    return [*few_shot_indices_by_seed(labels, few_shot_k[regime], seeds)]


def fit_all(
    problem: Problem,
    rows_by_fit: list[npt.NDArray[np.int64] | None],
    device: Device = CPU,
) -> list[Fit]:
    """Return one fit per entry of `rows_by_fit`, each with predictions of the test split."""
    fits = []
    for indices in rows_by_fit:
        train, labels = problem.training(indices)
        used_device = device if device.fits_on(train) else CPU
        fits.append(fit(used_device.put(train), labels, used_device.put(problem.test), used_device))
    return fits
