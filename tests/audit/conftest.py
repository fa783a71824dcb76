"""Scores that audits without a sandbox share."""

import os

import pytest

from tests.audit.unboxed import SCORES


@pytest.fixture(scope="session", autouse=True)
def kept_scores(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let all unboxed audits of a run share their scores, those of other test processes too."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    scores = shared / "kept-scores"
    scores.mkdir(exist_ok=True)
    os.environ[SCORES] = str(scores)
