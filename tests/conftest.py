"""What several folders of tests share."""

import copy
import gc
import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from geneb_ci.common.benchmark import shipped_benchmark
from reference_harness.formats.submission import SubmissionV11
from reference_harness.probe import scorer
from tests import examples, forked, memory_folder
from tests.paths import SUBMISSIONS

# What is scored in the process of a test is of record, too: before any module loads NumPy.
scorer.set_environment()


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples properties are tried with, and set up a worker of pytest-xdist.

    What gates a change tries the same examples each time; a developer's machine tries new ones.
    """
    gate = "not nightly" in config.option.markexpr
    examples.choose(derandomize=bool(os.environ.get("CI")), gate=gate)
    set_up_worker()
    if "PYTEST_XDIST_WORKER" not in os.environ:  # workers have the environment of who starts them
        memory_folder.use()
        use_new_caches(config)


def use_new_caches(config: pytest.Config) -> None:
    """Give this run cache folders of its own: no earlier run, nor its user, lends it a result."""
    patch = pytest.MonkeyPatch()
    folder = tempfile.mkdtemp(prefix="geneb-ci-caches-")
    patch.setenv("XDG_CACHE_HOME", folder)
    patch.delenv("GENEB_HARNESS_CACHE", raising=False)
    config.add_cleanup(lambda: shutil.rmtree(folder, ignore_errors=True))
    config.add_cleanup(patch.undo)


def set_up_worker() -> None:
    """Give each worker of pytest-xdist a processor, and let Python keep what it compiled.

    A pool of processes or of BLAS threads that a test starts has one for each processor it may use.
    Where every processor has a worker already, more of them only import scikit-learn once more each
    or wait for one another. Tests of several workers name their number.
    """
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a thousand processes would compile the same
    sys.dont_write_bytecode = False
    worker = os.environ.get("PYTEST_XDIST_WORKER", "")
    if worker and hasattr(os, "sched_setaffinity"):
        processors = sorted(os.sched_getaffinity(0))
        if int(os.environ["PYTEST_XDIST_WORKER_COUNT"]) >= len(processors):
            number = int(worker.removeprefix("gw")) % len(processors)
            os.sched_setaffinity(0, {processors[number]})


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while tests are collected, and leave them out of every later search.

    Ten thousand tests and their modules stay until the end; each search of them costs 0.2 s.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Offer the flag that writes golden files anew."""
    parser.addoption(
        "--update-golden",
        action="store_true",
        help="write golden files anew; read the diff before you commit it",
    )


NIGHTLY = pytest.StashKey[list[str]]()
"""Ids of the tests that `-m "not nightly"` left out of this run."""


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Remember what is left to the night: tests/house/test_collection.py counts it as collected."""
    for item in items:
        if item.get_closest_marker("nightly"):
            item.config.stash.setdefault(NIGHTLY, []).append(item.nodeid)


@pytest.fixture(scope="session", autouse=True)
def _no_server_is_left(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.getbasetemp()
    forked.share(folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder)
    yield
    forked.stop()


@pytest.fixture(autouse=True)
def _state_of_the_process() -> Iterator[None]:
    """Restore the limit of depth, which libraries raise, and what commands do about SIGTERM."""
    limit, handler = sys.getrecursionlimit(), signal.getsignal(signal.SIGTERM)
    yield
    sys.setrecursionlimit(limit)
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be written anew."""
    return bool(request.config.getoption("--update-golden"))


@pytest.fixture(autouse=True, scope="session")
def _no_width_from_outside() -> None:
    """Let a command write as into a pipe: workers of pytest-xdist set COLUMNS, a shell may."""
    os.environ.pop("COLUMNS", None)


NO_REAL_TASKS = "real tasks"
"""What the reason of a test begins with that did not run for want of them."""


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Count the tests that need the real tasks and had none: nobody reads each reason."""
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if isinstance(report.longrepr, tuple)
        and report.longrepr[2].removeprefix("Skipped: ").startswith(f"{NO_REAL_TASKS}: ")
    ]
    if skipped:
        terminalreporter.write_sep("=", "not run", yellow=True)
        terminalreporter.write_line(
            f"not run: {len(skipped)} tests need the six real tasks (`make real-tasks`)"
        )


def document_v11() -> dict[str, Any]:
    """Return a format 1.1 document: the scores of a real row, the rest made up."""
    document: dict[str, Any] = json.loads((SUBMISSIONS / "splicebert-1024nt.json").read_bytes())
    benchmark = shipped_benchmark()
    document["schema_version"] = "1.1"
    document["run"] = {
        "benchmark": {"name": benchmark.name, "sha256": benchmark.sha256},
        "dataset": {"repo_id": benchmark.dataset.repo_id, "revision": benchmark.dataset.revision},
        "harness": {"version": "GENEB-0.1.0", "commit": "0" * 40, "dirty": False},
        "extractor": {"path": "submissions/extractors/x.py", "class_name": "X", "sha256": "0" * 64},
        "model": {
            "kind": "huggingface",
            "location": "org/model",
            "revision": "1" * 40,
            "weights": {"model.safetensors": "2" * 64},
        },
        "embedding": {
            "layer": "last",
            "pooling": "mean",
            "dim": 512,
            "max_length": 1024,
            "truncation": "windows",
            "dtype": "float32",
        },
        "hardware": {"device": "cpu", "name": "x86-64"},
        "packages": {"scikit-learn": "1.9.1"},
        "started_at": "2026-11-20T08:30:00Z",
        "finished_at": "2026-11-20T09:30:00Z",
    }
    document["evidence"] = {
        regime: {
            task: {
                "n_test": benchmark.by_id[task].n_test,
                "per_seed": {metric: [value] * 5 for metric, value in scores.items()},
                "predictions_sha256": "0" * 64,
            }
            for task, scores in tasks.items()
        }
        for regime, tasks in document["results"].items()
    }
    return document


@pytest.fixture
def submission_v11() -> Callable[[Callable[[dict[str, Any]], None]], SubmissionV11]:
    """Return a maker of typed 1.1 submissions that differ from a sound one by one change."""

    def make(change: Callable[[dict[str, Any]], None]) -> SubmissionV11:
        document = copy.deepcopy(document_v11())
        change(document)
        return SubmissionV11.model_validate(document)

    return make
