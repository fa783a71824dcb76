"""The scorer of record: what it is, and that a process which is not it is refused by name."""

import json
import os
import subprocess
import sys
import tomllib
from typing import Any

import pytest

from reference_harness.errors import ScorerError
from reference_harness.formats import scorer as defined
from reference_harness.formats import submission_terms
from reference_harness.probe import logistic, scorer
from reference_harness.probe.scorer import SCORER, scorer_ref
from tests.paths import ROOT

BLAS = {
    name: {"version": version, "architecture": "Haswell"}
    for name, version in defined.OPENBLAS.items()
}
AS_DEFINED: dict[str, Any] = {
    "platform": defined.PLATFORM,
    "packages": defined.PACKAGES,
    "blas": BLAS,
    "threads": 1,
}
FIT = """
import json, sys
if "late" in sys.argv:
    import numpy, scipy.linalg
from reference_harness.engine.blas import limit_to_scorer
limit_to_scorer()
from reference_harness.errors import ScorerError
from reference_harness.probe.scorer import SCORER
try:
    SCORER.check()
    refusal = None
except ScorerError as error:
    refusal = str(error)
import numpy as np
from reference_harness.probe import logistic
draw = np.random.RandomState(1)
scale = np.logspace(0, 3, 64)
x = (draw.standard_normal((600, 64)) * scale).astype(np.float16).astype(np.float32)
y = np.argmax(x[:, :5] / scale[:5] + draw.standard_normal((600, 5)), axis=1)
fitted = logistic.fit(x[:400], y[:400], x[400:])
from sklearn.linear_model import LogisticRegression
weights = LogisticRegression(max_iter=1000).fit(x[:400], y[:400]).coef_
import hashlib
print(json.dumps([refusal, fitted.iterations, hashlib.sha256(weights.tobytes()).hexdigest()]))
"""


def fit(*words: str, **variables: str) -> Any:
    """Fit in a process with settings from outside; return refusal, steps and digest of weights."""
    done = subprocess.run(
        [sys.executable, "-c", FIT, *words], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
    )  # fmt: skip
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def plain():
    """Return what a fit gives without settings from outside."""
    return fit()


SETTINGS = (
    {"OPENBLAS_CORETYPE": "Prescott"},
    {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"},
    {"OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "OPENBLAS_CORETYPE": "Sandybridge"},
)


@pytest.mark.nightly  # in the gate, of a whole run: tests/receipt/test_of_record.py
@pytest.mark.parametrize("settings", SETTINGS)
def test_settings_from_outside_change_no_bit(plain, settings):
    assert plain[0] is None
    assert fit(**settings) == plain


@pytest.mark.nightly  # in the gate, without the scorer: tests/receipt/test_of_record.py
def test_another_kernel_gives_another_fit(plain):
    assert plain[1] > 50, "a fit that is long enough to show another kernel"
    late = fit("late", OPENBLAS_CORETYPE="Sandybridge")
    assert late[1:] != plain[1:]
    refusal, *_ = late

    assert refusal.startswith(
        "this machine does not have the scorer of record: the kernel Sandybridge of OpenBLAS of "
        "numpy, expected Haswell; the kernel Sandybridge of OpenBLAS of scipy, expected Haswell: "
    )
    assert "`geneb-harness receipt-rescore`" in refusal


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"platform": "Linux aarch64"}, "Linux aarch64, expected Linux x86_64"),
        ({"packages": {**defined.PACKAGES, "scipy": "1.18.1"}}, "scipy 1.18.1, expected 1.17.1"),
        ({"packages": {"numpy": "2.4.6", "scipy": "1.17.1"}}, "scikit-learn not installed"),
        ({"blas": {"numpy": BLAS["numpy"]}}, "no OpenBLAS in the wheel of scipy, expected 0.3.30"),
        (
            {"blas": {**BLAS, "scipy": {**BLAS["scipy"], "architecture": "Zen"}}},
            "the kernel Zen of OpenBLAS of scipy, expected Haswell",
        ),
        (
            {"blas": {**BLAS, "numpy": {**BLAS["numpy"], "version": "0.3.29"}}},
            "OpenBLAS 0.3.29 of numpy, expected 0.3.31.188.0",
        ),
        ({"threads": 2}, "2 threads, expected 1"),
    ],
)
def test_each_difference_is_named(change, words):
    assert scorer_ref(**AS_DEFINED) == SCORER.ref
    other = scorer_ref(**{**AS_DEFINED, **change})
    assert other.digest is None
    assert words in (other.reason or "")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scorer, "scorer_ref", lambda **_: other)
        with pytest.raises(ScorerError, match="does not have the scorer of record"):
            SCORER.check()


def test_a_processor_without_the_instructions_is_not_told_the_kernel(tmp_path):
    processor = tmp_path / "cpuinfo"
    for flags, runs in (("fpu sse4_2 avx", False), ("fpu avx avx2 fma", True), ("avx2", False)):
        processor.write_text(f"processor\t: 0\nflags\t\t: {flags}\n", encoding="utf-8")
        assert scorer._processor_runs_kernel(processor) is runs
    assert not scorer._processor_runs_kernel(tmp_path / "none")


def test_the_definition_is_what_the_code_does():
    assert f"max_iter={logistic.ITERATIONS_MAX}" in defined.SOLVER
    assert submission_terms.UNSCALED_MIN == 2.0**-6
    assert (submission_terms.FLOAT16_MAX, submission_terms.SCALED_MAGNITUDE_LOG2) == (65504, 14)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pins = {f"{name}=={version}" for name, version in defined.PACKAGES.items()}
    for extra in ("harness", "mini"):
        assert pins <= set(extras["optional-dependencies"][extra])


def test_another_definition_is_another_scorer(monkeypatch):
    """A changed digest makes every published row stale: receipts have to be scored again."""
    before = "f03611ffc400b646455ce31a4e4855da307769db2e30e614bbf6fec3055652b8"
    assert defined.digest() == SCORER.digest == before
    for member in ("SOLVER", "FEATURES", "PLATFORM", "KERNEL", "THREADS", "PACKAGES", "OPENBLAS"):
        with monkeypatch.context() as patch:
            patch.setattr(defined, member, "another")
            assert defined.digest() != before


def test_the_command_shows_the_scorer(harness):
    done = harness("scorer")
    assert (done.returncode, done.stderr) == (0, "")
    assert SCORER.digest in done.stdout
    assert (
        done.stdout.splitlines()[-1]
        == "this machine has the scorer of record: scores computed here can be published"
    )
