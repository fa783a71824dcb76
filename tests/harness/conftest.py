"""Fixtures of the harness' tests: the real tasks, the command, one BLAS thread as in a worker."""

import json
import os
from pathlib import Path

import pytest
import sklearn.linear_model  # noqa: F401 - loads every BLAS, so that the limit below reaches it
from threadpoolctl import threadpool_limits

from reference_harness.formats.scorer import THREADS
from tests.conftest import NO_REAL_TASKS
from tests.harness.support import Harness
from tests.paths import REAL_TASKS, ROOT

# Two pools of BLAS threads in one process spin against each other.
threadpool_limits(limits=THREADS)

PINNED = json.loads((ROOT / "tests/real_tasks.json").read_bytes())["tasks"]


def held(folder: Path) -> set[str]:
    """Name the real tasks that a folder has, in either layout."""
    return {
        task
        for task in PINNED
        if (folder / f"{task}.csv.gz").is_file() or (folder / "tasks" / task / "test.csv").is_file()
    }


@pytest.fixture(scope="session")
def real_tasks() -> Path:
    """Return the folder of the six real tasks.

    Fails without them where GENEB_REAL_TASKS says that they are there; elsewhere the summary counts
    the tests that did not run.
    """
    if lacking := sorted(PINNED.keys() - held(REAL_TASKS)):
        why = f"{NO_REAL_TASKS}: {REAL_TASKS} lacks {', '.join(lacking)}: run `make real-tasks`"
        (pytest.fail if os.environ.get("GENEB_REAL_TASKS") else pytest.skip)(why)
    return REAL_TASKS


@pytest.fixture
def harness(tmp_path: Path) -> Harness:
    return Harness(tmp_path)
