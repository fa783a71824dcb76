"""The probe: what a seed moves, what it does not, and what the record is told."""

import json
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import sklearn.linear_model
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from reference_harness import mini
from reference_harness.cli import run
from reference_harness.errors import OptionError, ProbeError
from reference_harness.loading.loader import load
from reference_harness.probe import logistic
from reference_harness.run import task_job
from tests.harness.support import REPOSITORY, Harness

SEEDS = [13, 17, 42, 123, 997]
FEW = {"10shot": 10, "1shot": 1}


def embedded(task_id: str) -> logistic.Problem:
    data = mini.load(task_id)
    embed = load("kmer").extractor.extract_embeddings
    return logistic.Problem(
        embed(data.train.sequences), data.train.labels,
        embed(data.test.sequences), data.test.labels,
    )  # fmt: skip


@pytest.mark.parametrize("task_id", ["mini_promoter", "mini_species"])
@pytest.mark.parametrize("scale", [1.0, 1000.0], ids=["k-mers", "many steps"])
def test_five_full_fits_agree_bit_for_bit(task_id: str, scale: float) -> None:
    problem = embedded(task_id)
    train = problem.train * np.float32(scale)
    fits = [
        LogisticRegression(max_iter=1000, random_state=seed).fit(train, problem.train_labels)
        for seed in SEEDS
    ]
    assert len({fit.coef_.tobytes() for fit in fits}) == 1
    assert len({fit.intercept_.tobytes() for fit in fits}) == 1
    assert len({tuple(fit.n_iter_) for fit in fits}) == 1


def test_the_full_regime_is_fitted_once() -> None:
    labels = np.array([0, 1, 1, 0])
    assert logistic.fit_indices(labels, "full", SEEDS, FEW) == [None]
    assert len(logistic.fit_indices(labels, "1shot", SEEDS, FEW)) == 5


@given(
    labels=st.lists(st.integers(-3, 6), min_size=1, max_size=60),
    k=st.integers(1, 12),
    seed=st.sampled_from(SEEDS),
)
def test_few_shot_draws_as_upstream(labels: list[int], k: int, seed: int) -> None:
    values = np.array(labels, dtype=np.int64)
    rng = np.random.RandomState(seed)
    expected: list[int] = []
    for label in sorted(set(labels)):
        indices = [i for i, row_label in enumerate(labels) if row_label == label]
        expected += list(rng.choice(indices, min(k, len(indices)), replace=False))
    drawn = logistic.few_shot_indices(values, k, seed)
    assert drawn.tolist() == expected
    after_others = logistic.few_shot_indices_by_seed(values, k, [*SEEDS, seed])[-1]
    assert after_others.tolist() == expected
    assert len(set(drawn.tolist())) == len(drawn)


def test_a_probe_that_stops_at_its_limit_says_so() -> None:
    rng = np.random.RandomState(0)
    x = rng.standard_normal((2000, 256)) / np.arange(1, 257)
    scores = x @ (rng.standard_normal((256, 2)) * np.sqrt(np.arange(1, 257))[:, None])
    labels = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
    train = (30 * x + 30 * rng.standard_normal(256)).astype(np.float32)
    fit = logistic.fit(train, labels, train)
    assert (fit.iterations, fit.converged) == (logistic.ITERATIONS_MAX, False)
    assert not fit.notes


def test_a_solver_that_cannot_go_on_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    class Stuck(LogisticRegression):  # type: ignore[misc]  # scikit-learn has no types
        def fit(self, x: np.ndarray, y: np.ndarray) -> "Stuck":
            super().fit(x, y)
            warnings.warn("lbfgs stopped: ABNORMAL", ConvergenceWarning, stacklevel=1)
            warnings.warn("something else", RuntimeWarning, stacklevel=1)
            return self

    monkeypatch.setattr(sklearn.linear_model, "LogisticRegression", Stuck)
    train = np.array([[0.0], [1.0]], dtype=np.float32)
    fit = logistic.fit(train, np.array([0, 1]), train)
    assert not fit.converged
    assert fit.notes == ("RuntimeWarning: something else",)


def test_constant_predictions_are_seen() -> None:
    rng = np.random.RandomState(0)
    labels = np.array([0] * 90 + [1] * 10)
    fit = logistic.fit((rng.random_sample((100, 4)) * 1e-6).astype("f4"), labels, np.ones((7, 4)))
    assert fit.is_constant
    assert fit.converged


def test_float32_stays_float32() -> None:
    problem = embedded("mini_tf")
    assert problem.train.dtype == np.float32
    stock = LogisticRegression(max_iter=1000).fit(problem.train, problem.train_labels)
    assert stock.coef_.dtype == np.float32


@pytest.mark.parametrize(
    ("train", "labels", "says"),
    [
        (
            np.ones((3, 2)),
            [0, 1],
            "train: features have shape (3, 2), expected one row for each of 2 labels",
        ),
        (np.ones((2, 2)), [1, 1], "train: every label is 1, expected at least two classes"),
        (
            np.ones((0, 2)),
            [],
            "train: features have shape (0, 2), expected one row for each of 0 labels",
        ),
    ],
    ids=["counts differ", "one class", "empty"],
)
def test_refuses_what_cannot_be_fitted(train: np.ndarray, labels: list[int], says: str) -> None:
    with pytest.raises(ProbeError) as caught:
        logistic.Problem(train, np.array(labels, dtype=np.int64), np.ones((2, 2)), np.array([0, 1]))
    assert str(caught.value) == says


ARRAY_API = """
from reference_harness.engine import blas
blas.limit_to_scorer(array_api=True)
import numpy as np
from reference_harness import mini
from reference_harness.loading.loader import load
from reference_harness.probe import logistic
embed = load("kmer").extractor.extract_embeddings
for task_id in ("mini_promoter", "mini_species"):
    data = mini.load(task_id)
    problem = logistic.Problem(embed(data.train.sequences), data.train.labels,
                               embed(data.test.sequences), data.test.labels)
    few = logistic.few_shot_indices(data.train.labels, 10, 13)
    large = logistic.Device("cpu", torch=True, size_min=problem.train.size)
    assert (large.fits_on(problem.train), large.fits_on(problem.train[few])) == (True, False)
    small = [logistic.fit_all(problem, [few], device)[0].predictions
             for device in (large, logistic.CPU)]
    assert (small[0] == small[1]).all()
    for rows in ([None], [few]):
        torch_device = logistic.Device("cpu", torch=True, size_min=0)
        torch_fit = logistic.fit_all(problem, rows, torch_device)[0]
        numpy_fit = logistic.fit_all(problem, rows)[0]
        assert torch_fit.predictions.dtype == np.int64
        assert set(torch_fit.predictions) <= set(data.train.labels)
        print((torch_fit.predictions == numpy_fit.predictions).mean())
"""


@pytest.mark.nightly  # in the gate, a torch device of the canonical probe: test_harness_newton.py
def test_torch_tensors_go_through_the_array_api() -> None:
    """On CPU tensors: the path of CUDA, at another number, which is near but need not equal.

    Small fits are those of the CPU.
    """
    done = subprocess.run(
        [sys.executable, "-c", ARRAY_API],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    agreements = [float(line) for line in done.stdout.split()]
    assert len(agreements) == 4
    assert min(agreements) > 0.9


@pytest.mark.parametrize(
    ("device_options", "says"),
    [
        ({}, ""),
        ({"jobs": 1}, ""),
        ({"jobs": 2}, "--jobs 2: on cuda, only one process can fit probes: leave --jobs out"),
        (
            {"engine": "ray"},
            "--probe-device cuda: on a cluster, probes run on CPUs: leave --probe-device out",
        ),
    ],
    ids=["default", "one", "several", "cluster"],
)
def test_one_process_alone_uses_an_accelerator(
    monkeypatch: pytest.MonkeyPatch, device_options: dict[str, object], says: str
) -> None:
    """Each would take a context, and memory, on a device that the embedder has, too."""
    monkeypatch.setattr(run, "_torch_device", lambda name: (name, ""))
    options: dict[str, Any] = {
        "probe_device": "cuda",
        "jobs": None,
        "engine": "local",
        "embedders": None,
        "fail_fast": False,
    }
    options |= device_options
    if says:
        with pytest.raises(OptionError, match=f"^{says}$"):
            run._probe_device(options)
        return
    device = run._probe_device(options)
    assert (device.name, device.is_accelerator) == ("cuda", True)
    made = mock.Mock()
    monkeypatch.setattr(run, "LocalEngine", made)
    monkeypatch.setattr(run, "InProcessEmbedder", mock.Mock())
    run._engine(options, mock.Mock(), None, mock.Mock(), device)
    assert made.call_args.args[1] == 1


def test_a_full_device_names_the_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        task_job, "Cache", mock.Mock(side_effect=RuntimeError("CUDA out of memory"))
    )
    for device, cure in (
        (logistic.Device("cuda", torch=True), "leave out --probe-device"),
        (logistic.CPU, "use fewer --jobs"),
    ):
        empty = np.array([], dtype=np.int64)
        failed = task_job.ProbeTaskJob(
            "a", Path("c"), {}, b"", empty, b"", empty, (), (), {}, device=device
        ).execute()
        assert isinstance(failed, task_job.ProbeFailure)
        assert failed.reason == f"a: the probe failed: RuntimeError: CUDA out of memory; {cure}"


@pytest.mark.nightly  # the run below names one; test_harness_cli.py has one that torch has not
@pytest.mark.parametrize(("name", "wrong"), [("cpu", ""), ("meta", "Tensor.item() cannot be")])
def test_torch_is_asked_for_a_device_elsewhere(name: str, wrong: str) -> None:
    """In float64, in a process that ends: this one takes no memory there."""
    device, message = run._torch_device(name)
    assert message.startswith(wrong)
    assert bool(message) == bool(wrong)
    assert wrong or device == name


@pytest.mark.nightly  # of the gate are the arrays of torch, above
def test_the_device_of_the_probe_is_no_part_of_the_embeddings(harness: Harness) -> None:
    run = ("run", "--tasks", "mini_tf", "--regimes", "1shot", "--output")
    assert harness(*run, "a.json").returncode == 0
    assert harness(*run, "b.json", "--probe-device", "torch-cpu").returncode == 0
    document = json.loads((harness.folder / "b.json").read_bytes())
    assert document["tasks"]["mini_tf"]["embedded_now"] == 0
    assert document["probe"].items() >= {"array_api": True, "least_numbers": 1 << 22}.items()
