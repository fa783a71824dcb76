"""Fixtures of the harness' tests: the real tasks, the command, one BLAS thread as in a worker."""

import os
from pathlib import Path

import pytest
import sklearn.linear_model  # noqa: F401 - loads every BLAS, so that the limit below reaches it
from threadpoolctl import threadpool_limits

from reference_harness.engine import threads
from tests.harness.support import REPOSITORY, Harness

# Two pools of BLAS threads in one process spin against each other.
threadpool_limits(limits=threads.THREADS)

REAL_TASKS = REPOSITORY.parent / "shared" / "geneb" / "tasks"


@pytest.fixture(scope="session")
def real_tasks() -> Path:
    """Return the folder of the six real tasks; without it a developer's run skips, CI fails."""
    if not REAL_TASKS.is_dir():
        why = f"{REAL_TASKS} is missing: the six public GENEB tasks belong there"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)
    return REAL_TASKS


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)
