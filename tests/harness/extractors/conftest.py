"""The tiny models, built once a test process."""

import pytest

from tests.harness.extractors import models


@pytest.fixture(scope="session", autouse=True)
def _one_thread():
    """Hold the processes of a check to one thread each: tiny models gain nothing from more."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OMP_NUM_THREADS", "1")
        yield


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Return a function from the kind of a model to the folder it is saved in."""
    root = tmp_path_factory.mktemp("models")
    return lambda kind: root / kind if (root / kind).exists() else models.save(kind, root / kind)
