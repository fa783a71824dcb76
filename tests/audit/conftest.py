"""What audits without a sandbox share: scores, and a Hub for models that need torch."""

import os
from collections.abc import Iterator

import pytest

from tests.audit.unboxed import SCORES
from tests.publish.hub import Hub


@pytest.fixture(scope="session", autouse=True)
def kept_scores(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Let all unboxed audits of a run share their scores, those of other test processes too."""
    folder = tmp_path_factory.getbasetemp()
    shared = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder
    scores = shared / "kept-scores"
    scores.mkdir(exist_ok=True)
    os.environ[SCORES] = str(scores)


@pytest.fixture(scope="session")
def hub() -> Iterator[Hub]:
    made = Hub()
    yield made
    made.close()


@pytest.fixture(scope="session")
def hub_settings(hub: Hub, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the Hub's settings: one process with torch serves all commands that have the same."""
    return {
        "HF_ENDPOINT": hub.endpoint,
        "HF_HOME": str(tmp_path_factory.mktemp("hf")),
        "HF_HUB_DISABLE_TELEMETRY": "1",
    }
